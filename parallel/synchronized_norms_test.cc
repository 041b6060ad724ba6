// Batch norm over all ranks in a program of the user's: what is learned is what one process learns with torch's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>

#include "parallel/testing/ranks.h"

namespace remuda::parallel {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;
namespace nn = torch::nn;

constexpr int64_t kBatch = 12;
constexpr double kRate = 0.1;

/// A linear layer, batch norm, another layer.
template <typename Norm>
nn::Sequential make_model(Norm norm) {
  nn::Sequential model(nn::Linear(4, 3), std::move(norm), nn::Tanh(), nn::Linear(3, 2));
  const torch::NoGradGuard no_grad;
  for (auto& one : model->parameters()) one.copy_(torch::arange(1, one.numel() + 1).cos().mul(0.7).view_as(one));
  return model;
}
nn::Sequential synchronized(int64_t channels = 3) { return make_model(SynchronizedBatchNorm(channels)); }

torch::Tensor inputs() { return torch::arange(kBatch * 4).view({kBatch, 4}).sin() * 3 + 5; }

/// The sum of the losses of some samples.
torch::Tensor loss_of(nn::Sequential& model, int64_t begin, int64_t size) {
  return model->forward(inputs().narrow(0, begin, size)).square().sum();
}

/// Pieces that are normalised one after the other, by torch alone; then a step.
std::vector<torch::Tensor> learned_alone(const std::vector<std::vector<Part>>& pieces) {
  auto model = make_model(nn::BatchNorm1d(3));
  for (const auto& piece : pieces) {
    std::vector<torch::Tensor> parts;
    for (const Part& part : piece) parts.push_back(inputs().narrow(0, part.begin, part.size));
    (model->forward(torch::cat(parts)).square().sum() / kBatch).backward();
  }
  torch::optim::SGD(model->parameters(), kRate).step();
  auto tensors = model->parameters();
  for (const auto& buffer : model->buffers()) tensors.push_back(buffer);
  return tensors;
}

Options options_for(nn::Sequential& model) {
  Options options;
  options.trial = [model]() mutable { loss_of(model, 0, 2).backward(); };
  return options;
}

void expect_same(const nn::Sequential& model, const std::vector<torch::Tensor>& expected) {
  auto tensors = model->parameters();
  for (const auto& buffer : model->buffers()) tensors.push_back(buffer);
  ASSERT_EQ(tensors.size(), expected.size());
  for (size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(tensors[i].allclose(expected[i], 1e-5, 1e-6)) << i;
}

TEST(SynchronizedBatchNorm, OfAnyPartsIsThatOfTheWholeBatch) {
  const auto expected = learned_alone({{{0, kBatch}}});
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{7, 5}, {0, 11, 1}, {3, 0, 9, 0}})
    run_ranks(int(sizes.size()), [&](const Group& group) {
      auto model = synchronized();
      DataParallel parallel(group, *model, options_for(model));
      int64_t begin = 0;
      for (int rank = 0; rank < group.rank(); ++rank) begin += sizes[size_t(rank)];
      const int64_t size = sizes[size_t(group.rank())];
      torch::Tensor loss = torch::zeros({});
      parallel.begin(double(size));
      if (size > 0) {
        loss = loss_of(model, begin, size);
        loss.backward();
      }
      EXPECT_TRUE(parallel.step(kRate, loss).applied);
      expect_same(model, expected);
    });
}

/// The first pieces of both ranks together, then the second one of rank 0 alone.
TEST(SynchronizedBatchNorm, RanksMayHaveUnlikeNumbersOfPieces) {
  const auto expected = learned_alone({{{0, 4}, {8, 4}}, {{4, 4}}});
  run_ranks(2, [&](const Group& group) {
    auto model = synchronized();
    DataParallel parallel(group, *model, options_for(model));
    if (group.rank() == 0) {
      parallel.accumulate(4);
      loss_of(model, 0, 4).backward();
      parallel.begin(4);
      loss_of(model, 4, 4).backward();
    } else {
      parallel.begin(4);
      loss_of(model, 8, 4).backward();
    }
    EXPECT_TRUE(parallel.step(kRate).applied);
    expect_same(model, expected);
  });
}

TEST(SynchronizedBatchNorm, ARankThatGivesUpInItsForwardPassKeepsNobodyWaiting) {
  const auto expected = learned_alone({{{0, kBatch}}});
  run_ranks(2, [&](const Group& group) {
    auto model = synchronized();
    DataParallel parallel(group, *model, options_for(model));
    const auto buffers = model->buffers();
    std::vector<torch::Tensor> before;
    for (const auto& buffer : buffers) before.push_back(buffer.clone());
    parallel.begin(6);
    auto loss = loss_of(model, 6 * group.rank(), 6);
    if (group.rank() == 1)
      parallel.give_up();
    else
      loss.backward();
    EXPECT_THAT(parallel.step(kRate).skipped, HasSubstr("rank 1 gave up"));
    for (size_t i = 0; i < buffers.size(); ++i) torch::Tensor(buffers[i]).copy_(before[i]);
    parallel.begin(6);
    loss_of(model, 6 * group.rank(), 6).backward();
    EXPECT_TRUE(parallel.step(kRate).applied);
    expect_same(model, expected);
  });
}

TEST(SynchronizedBatchNorm, NeedsATrialAndSaysSo) {
  run_ranks(2, [](const Group& group) {
    auto model = synchronized();
    EXPECT_THAT(testing::refusal([&] { DataParallel parallel(group, *model); }), HasSubstr("Options::trial"));
  });
}

TEST(SynchronizedBatchNorm, IsTorchsOwnWithoutDataParallelAndInEvaluation) {
  auto ordinary = make_model(nn::BatchNorm1d(3));
  run_ranks(2, [&](const Group& group) {
    auto model = synchronized();
    auto of_no_data_parallel = synchronized();
    {
      DataParallel parallel(group, *model, options_for(model));
      auto clone = std::dynamic_pointer_cast<nn::SequentialImpl>(model->clone());
      if (group.rank() == 0) clone->forward(inputs());  // would wait for rank 1
      model->eval();
      ordinary->eval();
      EXPECT_TRUE(model->forward(inputs()).allclose(ordinary->forward(inputs())));
      model->train();
    }
    if (group.rank() == 1) return;
    EXPECT_TRUE(model->forward(inputs()).allclose(of_no_data_parallel->forward(inputs())));
  });
}

TEST(SynchronizedBatchNorm, GoesOnWithTheDataParallelThatTakesTheModelOver) {
  const auto expected = learned_alone({{{0, kBatch}}});
  run_ranks(2, [&](const Group& group) {
    auto model = synchronized();
    DataParallel parallel(group, *model, options_for(model));
    parallel = DataParallel(group, *model, options_for(model));
    parallel.begin(6);
    loss_of(model, 6 * group.rank(), 6).backward();
    EXPECT_TRUE(parallel.step(kRate).applied);
    expect_same(model, expected);
  });
}

/// Of images too, and with weights that are not trained.
TEST(SynchronizedBatchNorm, TakesInputsOfAnyDimensions) {
  run_ranks(2, [](const Group& group) {
    nn::Sequential model(SynchronizedBatchNorm(nn::BatchNormOptions(2).affine(false)), nn::Flatten(), nn::Linear(8, 1));
    const auto images = torch::arange(32).view({4, 2, 2, 2}).sin();
    Options options;
    options.trial = [&] { model->forward(images).sum().backward(); };
    DataParallel parallel(group, *model, options);
    parallel.begin(2);
    const auto mine = images.narrow(0, 2 * group.rank(), 2);
    nn::BatchNorm2d ordinary(nn::BatchNormOptions(2).affine(false));
    const auto normalised = model[0]->as<SynchronizedBatchNormImpl>()->forward(mine);
    EXPECT_TRUE(normalised.allclose(ordinary->forward(images).narrow(0, 2 * group.rank(), 2), 1e-5, 1e-6));
    model[2]->as<nn::LinearImpl>()->forward(normalised.flatten(1)).sum().backward();
    EXPECT_TRUE(parallel.step(kRate).applied);
  });
}

}  // namespace
}  // namespace remuda::parallel
