#include "train/local_step.h"

#include <gtest/gtest.h>
#include <map>
#include <numeric>

#include "base/clock.h"
#include "comm/testing/run_ranks.h"
#include "train/testing/capped_memory.h"
#include "train/testing/data_files.h"
#include "train/testing/parallel.h"

namespace remuda::train {
namespace {

using testing::ModelCase;

struct Step {
  std::vector<torch::Tensor> gradient;
  double weight = 0, loss_sum = 0;
  size_t peak = 0;  ///< bytes
};

/// One step of one rank on `samples` samples, in pieces.
Step step_in(size_t pieces, const ModelCase& model_case, const Samples& samples, size_t count) {
  Step step;
  const auto model = testing::make_seeded(model_case, torch::kFloat);
  std::vector<uint64_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  run_ranks(1, comm::ConnectOptions::Transport::automatic, [&](comm::Communicator& communicator) {
    Pace pace(1, steady_clock());
    LocalStep local(*model, testing::cpu_ops(), pace, {.padding = model_case.padding, .pieces = pieces});
    const Batch one = samples.gather(std::vector<uint64_t>{0}).value();
    const Batch batch = samples.gather(indices).value();
    const auto parallel = DataParallel::create(communicator, testing::cpu_ops(), model->parameters(), [&] {
                            local.run_alone(one);
                          }).value();
    for (int repeat = 0; repeat < 2; ++repeat) {  // the second starts from zero again
      testing::Budget budget;
      {
        const testing::OnDevice device(budget);
        local.run(batch, {}, *parallel);
      }
      const auto reduced = parallel->reduce().value();
      step = {testing::whole_gradient(communicator, *parallel, model->parameters(), 1), reduced.totals.weight,
              reduced.totals.loss_sum, budget.peak};
    }
  });
  return step;
}

// 1e-6: sums of float32 in another order. Pieces of gpt have unlike weights, as they have unlike padding.
TEST(LocalStep, InPiecesHasTheGradientOfTheWhole) {
  for (const ModelCase& model_case : testing::model_cases()) {
    const Samples samples = testing::make_samples(model_case, 20);
    const testing::CappedMemory counted;
    const Step whole = step_in(1, model_case, samples, 20);
    for (const size_t pieces : {3, 4, 50}) {
      SCOPED_TRACE(model_case.name + " in " + std::to_string(pieces));
      const Step cut = step_in(pieces, model_case, samples, 20);
      EXPECT_LT(testing::relative_error(cut.gradient, whole.gradient), 1e-6);
      EXPECT_EQ(cut.weight, whole.weight);
      EXPECT_NEAR(cut.loss_sum, whole.loss_sum, 1e-5 * whole.loss_sum);
      EXPECT_LT(cut.peak, whole.peak);
    }
  }
}

/// Notes the sizes of the batches that go through a model.
class Sizes final : public Model {
 public:
  explicit Sizes(std::unique_ptr<Model> model) : model_(std::move(model)) {}
  torch::Tensor forward(const torch::Tensor& input) override {
    sizes.push_back(input.size(0));
    return model_->forward(input);
  }
  std::vector<torch::Tensor> parameters() override { return model_->parameters(); }
  std::vector<torch::Tensor> buffers() override { return model_->buffers(); }
  std::vector<NamedTensor> named_parameters() override { return model_->named_parameters(); }
  std::vector<NamedTensor> named_buffers() override { return model_->named_buffers(); }
  void set_training(bool training) override { model_->set_training(training); }
  void to(torch::ScalarType type) override { model_->to(type); }
  void to(torch::Device device) override { model_->to(device); }

  std::vector<int64_t> sizes;

 private:
  std::unique_ptr<Model> model_;
};

TEST(LocalStep, MicroBatchesAreEqualAndTheLastHasWhatIsLeft) {
  const ModelCase mlp = testing::model_cases()[0];
  Sizes model(testing::make_seeded(mlp, torch::kFloat));
  Pace pace(1, steady_clock());
  LocalStep local(model, testing::cpu_ops(), pace, {.pieces = 7, .micro_batch = 8});
  for (const auto& [samples, sizes] :
       std::map<int64_t, std::vector<int64_t>>{{24, {8, 8, 8}}, {20, {8, 8, 4}}, {8, {8}}, {3, {3}}}) {
    const Batch batch = testing::make_batch(mlp, samples, 1, torch::kFloat);
    model.sizes.clear();
    EXPECT_TRUE(local.run_alone(batch));
    EXPECT_EQ(model.sizes, sizes);
    EXPECT_EQ(local.largest_piece(batch), sizes[0]);
  }
}

/// Pieces of 19, 20 and 20 samples; the memory ends in the first one, in the second, and at the last moment.
TEST(LocalStep, OutOfMemoryInAPieceLeavesNothingForTheNextStep) {
  const ModelCase mlp = testing::model_cases()[0];
  const Samples samples = testing::make_samples(mlp, 59);
  const testing::CappedMemory capped;
  const auto model = testing::make_seeded(mlp, torch::kFloat);
  run_ranks(1, comm::ConnectOptions::Transport::automatic, [&](comm::Communicator& communicator) {
    Pace pace(1, steady_clock());
    LocalStep local(*model, testing::cpu_ops(), pace, {.padding = mlp.padding, .pieces = 3});
    FirstSamples first_samples(samples);
    const auto parallel = DataParallel::create(communicator, testing::cpu_ops(), model->parameters(), [&] {
                            local.run_alone(first_samples(1));
                          }).value();
    const auto step = [&](int64_t count, size_t cap, bool fits) {
      const Batch batch = first_samples(count);
      testing::Budget budget;
      budget.cap = cap;
      {
        const testing::OnDevice device(budget);
        local.run(batch, {}, *parallel);
      }
      EXPECT_EQ(parallel->reduce().value().stands, fits) << cap;
      return Step{.gradient = testing::whole_gradient(communicator, *parallel, model->parameters(), 1),
                  .peak = budget.peak};
    };
    const Step small = step(57, SIZE_MAX, true), whole = step(59, SIZE_MAX, true);
    ASSERT_LT(small.peak, whole.peak);
    for (const size_t cap : {size_t(1000), small.peak, whole.peak - 1}) {
      step(59, cap, false);
      EXPECT_EQ(testing::relative_error(step(59, SIZE_MAX, true).gradient, whole.gradient), 0) << cap;
    }
  });
}

TEST(LocalStep, OfNoSamplesIsOnePieceOfNone) {
  const ModelCase mlp = testing::model_cases()[0];
  const Step step = step_in(3, mlp, testing::make_samples(mlp, 20), 0);
  EXPECT_EQ(step.weight, 0);
  for (const auto& gradient : step.gradient) EXPECT_TRUE(gradient.eq(0).all().item<bool>());
}

}  // namespace
}  // namespace remuda::train
