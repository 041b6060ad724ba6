#include "train/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "comm/testing/run_ranks.h"
#include "train/testing/capped_memory.h"
#include "train/testing/cases.h"
#include "train/testing/data_files.h"

namespace remuda::train {
namespace {

using testing::make_seeded;
using testing::model_cases;
constexpr int kHeldOut = 100;

/// Records the largest batch that goes through a model.
class LargestBatch final : public Model {
 public:
  explicit LargestBatch(std::unique_ptr<Model> model) : model_(std::move(model)) {}
  torch::Tensor forward(const torch::Tensor& input) override {
    samples = std::max(samples, input.size(0));
    EXPECT_FALSE(training_) << "evaluation mode";
    EXPECT_FALSE(at::GradMode::is_enabled());
    return model_->forward(input);
  }
  std::vector<torch::Tensor> parameters() override { return model_->parameters(); }
  std::vector<torch::Tensor> buffers() override { return model_->buffers(); }
  std::vector<NamedTensor> named_parameters() override { return model_->named_parameters(); }
  std::vector<NamedTensor> named_buffers() override { return model_->named_buffers(); }
  void set_training(bool training) override { model_->set_training(training_ = training); }
  void to(torch::ScalarType type) override { model_->to(type); }
  void to(torch::Device device) override { model_->to(device); }

  int64_t samples = 0;

 private:
  std::unique_ptr<Model> model_;
  bool training_ = true;
};

/// Loss and accuracy of all samples in one batch, computed straight.
Evaluation of_all(const testing::ModelCase& model_case, const Samples& samples) {
  const auto model = make_seeded(model_case, torch::kFloat);
  const torch::NoGradGuard no_grad;
  model->set_training(false);
  std::vector<uint64_t> indices(samples.size());
  std::iota(indices.begin(), indices.end(), 0);
  const Batch batch = samples.gather(indices).value();
  const auto loss = loss_sum(model_case.spec.loss, model->forward(batch.input), batch.target, model_case.padding, true);
  return {loss.sum.item<double>() / loss.weight, double(loss.correct) / loss.weight};
}

struct Run {
  std::vector<int> shares;
  size_t cap = SIZE_MAX;  ///< bytes of rank 1
  std::function<bool()> leave = [] { return false; };
};

/// What each rank gets, and the largest batch of each.
void expect_evaluation(const testing::ModelCase& model_case, const Run& run, const std::optional<Evaluation>& expected,
                       const std::vector<int64_t>& largest) {
  const Samples samples = testing::make_samples(model_case, kHeldOut);
  const int ranks = int(run.shares.size());
  std::vector<std::unique_ptr<LargestBatch>> models;
  for (int rank = 0; rank < ranks; ++rank)
    models.push_back(std::make_unique<LargestBatch>(make_seeded(model_case, torch::kFloat)));
  run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    Pace pace(1, steady_clock());
    const EvaluationPlan plan{model_case.spec, model_case.padding, run.shares, torch::kCPU, torch::kFloat, run.leave};
    testing::Budget budget;
    if (rank == 1) budget.cap = run.cap;
    const testing::OnDevice device(budget);
    const auto result = evaluate(communicator, *models[rank], samples, plan, pace);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->has_value(), expected.has_value());
    if (expected) {
      EXPECT_NEAR((*result)->loss, expected->loss, 1e-5);
      EXPECT_NEAR((*result)->accuracy, expected->accuracy, 1e-9);
    }
    EXPECT_LE(models[rank]->samples, largest[rank]);
  });
}

TEST(Evaluate, AnySplitGivesTheLossOfOneBatchOfAll) {
  for (const auto& model_case : model_cases()) {
    SCOPED_TRACE(model_case.name);
    const auto expected = of_all(model_case, testing::make_samples(model_case, kHeldOut));
    for (const std::vector<int>& shares : std::vector<std::vector<int>>{{kHeldOut}, {5, 2}, {1, 0, 6}, {300, 100}, {1}})
      expect_evaluation(model_case, {shares}, expected, {shares.begin(), shares.end()});
  }
}

TEST(Evaluate, RankThatRunsOutOfMemoryGoesOnWithSmallerBatches) {
  const auto model_case = model_cases()[1];
  const Samples samples = testing::make_samples(model_case, kHeldOut);
  const auto expected = of_all(model_case, samples);
  const testing::CappedMemory capped;
  const auto peak_of = [&](uint64_t count) {
    const auto model = make_seeded(model_case, torch::kFloat);
    const torch::NoGradGuard no_grad;
    model->set_training(false);
    testing::Budget budget;
    const testing::OnDevice device(budget);
    const std::vector<uint64_t> indices(count, 0);
    const Batch batch = samples.gather(indices).value();
    loss_sum(model_case.spec.loss, model->forward(batch.input), batch.target, -1, true);
    return budget.peak;
  };
  expect_evaluation(model_case, {.shares = {50, 50}, .cap = peak_of(8) + 4096}, expected, {50, 50});
}

TEST(Evaluate, MemoryForNoSampleIsAnErrorThatSaysSo) {
  const auto model_case = model_cases()[0];
  const Samples samples = testing::make_samples(model_case, kHeldOut);
  const testing::CappedMemory capped;
  run_ranks(1, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto model = make_seeded(model_case, torch::kFloat);
    Pace pace(1, steady_clock());
    const std::vector<int> shares{kHeldOut};
    testing::Budget budget{.cap = 10};
    const testing::OnDevice device(budget);
    const auto result = evaluate(communicator, *model, samples, {model_case.spec, -1, shares}, pace);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message,
                ::testing::HasSubstr("rank 0 ran out of memory in evaluation, with a single sample"));
  });
}

TEST(Evaluate, StopsInTheMiddleWhenARankIsAskedTo) {
  std::atomic<int> asked = 0;
  expect_evaluation(model_cases()[0], {.shares = {1, 1}, .leave = [&] { return ++asked > 0; }}, std::nullopt, {1, 1});
  EXPECT_EQ(asked, 2) << "at the ranks' first meeting";
}

TEST(AverageBuffers, CountsEachRankByItsSamplesAndTakesIntegersFromTheOneWithMost) {
  auto model_case = model_cases()[1];
  model_case.spec.norm = job::Norm::batch;
  std::vector<std::unique_ptr<Model>> models;
  for (int rank = 0; rank < 2; ++rank) models.push_back(make_seeded(model_case, torch::kFloat));
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    const torch::NoGradGuard no_grad;
    for (const auto& buffer : models[size_t(rank)]->buffers()) buffer.fill_(rank == 0 ? 1 : 5);
    ASSERT_TRUE(average_buffers(communicator, *models[size_t(rank)], rank == 0 ? 1 : 3));
    for (const auto& buffer : models[size_t(rank)]->buffers())
      EXPECT_TRUE(buffer.eq(buffer.is_floating_point() ? 4 : 5).all().item<bool>()) << buffer;
  });
}

}  // namespace
}  // namespace remuda::train
