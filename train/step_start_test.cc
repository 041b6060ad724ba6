#include "train/step_start.h"

#include <gtest/gtest.h>

#include "train/testing/cases.h"

namespace remuda::train {
namespace {

TEST(StepStart, BringsBackBuffersAndRandomNumbersAnyNumberOfTimes) {
  testing::ModelCase resnet = testing::model_cases()[1];
  resnet.spec.norm = job::Norm::batch;
  const auto model = testing::make_seeded(resnet, torch::kFloat);
  const Batch batch = testing::make_batch(resnet, 8, 1, torch::kFloat);
  StepStart start(*model, torch::kCPU);
  model->forward(batch.input);  // no buffer is as it was made
  start.keep();
  std::vector<torch::Tensor> before;
  for (const auto& buffer : model->buffers()) before.push_back(buffer.clone());
  torch::Tensor first;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto drawn = torch::rand({4});
    if (attempt == 0) first = drawn;
    EXPECT_TRUE(drawn.equal(first));
    model->forward(batch.input * (attempt + 2));
    EXPECT_FALSE(model->buffers()[0].equal(before[0]));
    start.restore();
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(model->buffers()[i].equal(before[i])) << i;
  }
}

}  // namespace
}  // namespace remuda::train
