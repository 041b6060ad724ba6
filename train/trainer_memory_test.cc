// What a run expects steps to take of its devices' memory, beside what the allocator counts; and what it does with
// that.
#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/capped_memory.h"
#include "train/testing/data_files.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

using testing::ModelCase;

class TrainerMemory : public ::testing::Test {
 protected:
  static constexpr int kSamples = 192, kBatch = 96, kRanks = 2;

  /// Runs a job of two ranks, the second of which has `room` bytes for tensors in all; 0: any number. So does its
  /// memory end, from its start with `cap`.
  static RunReport run(const job::TrainJob& job, double room = 0, size_t cap = SIZE_MAX) {
    RunReport report{.devices = std::vector<DeviceReport>(kRanks)};
    std::deque<testing::Budget> budgets(kRanks);
    const testing::CappedMemory counted;
    const std::atomic<bool> leave = false;
    const Events events(-1);
    run_ranks(kRanks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const bool first = communicator.rank() == 0;
      testing::Budget& budget = budgets[size_t(communicator.rank())];
      const testing::OnDevice device(budget);
      if (!first) budget.cap = cap;
      const auto trainer = Trainer::create(job, communicator, events, leave, {.room_bytes = first ? 0 : room}).value();
      if (first) flat_bytes_ = double(trainer->parameters().bytes());
      if (!first && room > 0) budget.cap = size_t(room) - trainer->parameters().bytes();
      const auto outcome = trainer->run();
      ASSERT_TRUE(outcome) << outcome.error().message;
      if (first) report = *outcome;
    });
    return report;
  }

  job::TrainJob job_of(const ModelCase& model_case) {
    job::TrainJob job;
    job.data = testing::write_samples(folder_, model_case, kSamples);
    job.model = model_case.spec;
    job.memory.recompute = model_case.recompute;
    job.train = {.epochs = 1, .global_batch = kBatch, .optimizer = job::Optimizer::adamw, .learning_rate = 0.001};
    job.devices = {{"cpu:0"}, {"cpu:1"}};
    job.balance = {balance::BalancePolicy::fixed, {3, 1}};
    return job;
  }

  /// A model whose forward pass takes so many bytes besides for each sample while it trains.
  std::string script(int more = 0) {
    torch::jit::Module module("script");
    module.register_attribute("training", c10::BoolType::get(), true);
    module.register_attribute("more", c10::IntType::get(), more / 4);
    module.register_parameter("up", torch::randn({64, 144}).mul(0.1).requires_grad_(), false);
    module.register_parameter("down", torch::randn({5, 64}).mul(0.1).requires_grad_(), false);
    module.define(R"(
def forward(self, x):
  if self.training:
    x = x + torch.zeros([x.size(0), self.more]).sum()
  return torch.matmul(torch.tanh(torch.relu(torch.matmul(x.flatten(1), self.up.t()))), self.down.t())
)");
    const std::string path = folder_.path("model.pt");
    module.save(path);
    return path;
  }

  static ModelCase large_gpt(job::Recompute recompute = job::Recompute::none) {
    ModelCase gpt = testing::model_cases()[2];
    gpt.spec.depth = 4;
    gpt.recompute = recompute;
    return gpt;
  }

  const ScratchFolder folder_;
  static inline double flat_bytes_ = 0;  ///< of the last run: in memory of the communicator, which no budget counts
};

TEST_F(TrainerMemory, ThePeakIsPredictedWithinATenth) {
  const auto& cases = testing::model_cases();
  ModelCase scripted{.name = "script", .spec = {.path = script()}, .input = {1, 12, 12, 5, 0}};
  for (const ModelCase& one : {cases[0], cases[1], large_gpt(), large_gpt(job::Recompute::blocks), scripted}) {
    for (const int pieces : {1, 3}) {
      SCOPED_TRACE(one.name + " in " + std::to_string(pieces));
      job::TrainJob job = job_of(one);
      job.memory.accumulate = pieces;
      const RunReport report = run(job);
      for (const DeviceReport& device : report.devices) {
        EXPECT_EQ(device.memory_need.known, 1);
        EXPECT_GT(device.memory_need.per_sample, 0);
        EXPECT_NEAR(device.memory.predicted_peak / device.memory.peak, 1, 0.1)
            << device.memory.predicted_peak << " and " << device.memory.peak;
      }
    }
  }
}

/// It takes steps as the others do, and holds most of what there is.
TEST_F(TrainerMemory, OfADeviceThatHoldsStateIsPredictedAndMeasured) {
  job::TrainJob job = job_of(large_gpt());
  job.balance = {};
  job.devices[1].role = balance::Role::state;
  const RunReport report = run(job);
  const DeviceReport& state = report.devices[1];
  EXPECT_EQ(state.samples, 0);
  EXPECT_EQ(state.memory.predicted_peak, state.memory_need.held);
  EXPECT_NEAR(state.memory.peak / state.memory.predicted_peak, 1, 0.1);
  EXPECT_GE(state.memory.peak, state.memory.parameters + state.memory.gradients + state.memory.optimizer);
  EXPECT_TRUE(to_json(report)["devices"][1]["memory"].contains("peak_by_kind"));
}

TEST_F(TrainerMemory, APartThatWillNotFitIsCutBeforeItIsTried) {
  job::TrainJob job = job_of(large_gpt());
  job.balance.shares = {1, 1};
  const RunReport roomy = run(job);
  const DeviceReport& whole = roomy.devices[1];
  const double room = whole.memory_need.held + (whole.memory.peak - whole.memory_need.held) / 2;
  const RunReport tight = run(job, room);
  EXPECT_EQ(tight.oom_steps, 0);
  EXPECT_GT(tight.devices[1].pieces, 1);
  EXPECT_EQ(tight.devices[0].pieces, 1);
  EXPECT_LE(tight.devices[1].memory.peak, room);
  EXPECT_EQ(tight.devices[1].share, 0.5);
}

TEST_F(TrainerMemory, BlocksAreRecomputedOnlyWhereAPartWouldNotFit) {
  job::TrainJob job = job_of(large_gpt(job::Recompute::automatic));
  job.balance.shares = {1, 1};
  const RunReport roomy = run(job);
  EXPECT_FALSE(roomy.recomputes);
  const DeviceReport& whole = roomy.devices[1];
  const double room = whole.memory_need.held + (whole.memory.peak - whole.memory_need.held) * 0.75;
  const RunReport tight = run(job, room);
  EXPECT_TRUE(tight.recomputes);
  EXPECT_EQ(tight.oom_steps, 0);
  EXPECT_EQ(tight.devices[1].pieces, 1);
  EXPECT_LE(tight.devices[1].memory.peak, room);
}

// The other device, which is slow, takes few samples, but owns half of the state unless it is there for all of it.
TEST_F(TrainerMemory, StateOnAnotherDeviceLeavesRoomForAWholePart) {
  ModelCase wide = testing::model_cases()[0];
  wide.spec.hidden = {64, 64};
  job::TrainJob job = job_of(wide);
  job.balance = {};
  job.devices[0] = {.use = "cpu:0", .slowdown = 20, .role = balance::Role::state};
  const double room = 1.05 * run(job).devices[1].memory_need.peak(kBatch);
  const RunReport report = run(job, room);
  EXPECT_EQ(report.devices[1].samples, kSamples);
  EXPECT_EQ(report.devices[1].pieces, 1);
  EXPECT_EQ(report.devices[1].state_share, 0);
  EXPECT_EQ(report.oom_steps, 0);
  ASSERT_TRUE(report.roles);
  EXPECT_THAT(report.roles->sentence, ::testing::HasSubstr("cpu:1 computes its part in 1 piece, in place of"));
  job.devices[0].role = balance::Role::compute;
  job.balance = {balance::BalancePolicy::fixed, {1, 95}};
  EXPECT_GT(run(job, room).devices[1].pieces, 1) << "as the sentence says";
}

// It is known before a step: the measurement of the device alone has no room for one sample.
TEST_F(TrainerMemory, BlocksAreRecomputedWhereNotOneSampleFitsWithout) {
  ModelCase deep = large_gpt();
  deep.spec.depth = 24;
  deep.input.context = 32;  // where activations outweigh parameters
  job::TrainJob job = job_of(deep);
  const RunReport kept = run(job);
  job.memory.recompute = job::Recompute::blocks;
  const RunReport recomputed = run(job);
  const auto one = [](const RunReport& report) { return report.devices[1].memory_need.peak(1); };
  ASSERT_GT(one(kept), 1.2 * one(recomputed)) << "there is something to gain";
  job.memory.recompute = job::Recompute::automatic;
  const RunReport report = run(job, 0.0, size_t((one(kept) + one(recomputed)) / 2 - flat_bytes_));
  EXPECT_TRUE(report.recomputes);
  EXPECT_GT(report.devices[1].samples, 0);
}

TEST_F(TrainerMemory, ADeviceWithoutRoomForASampleGetsNone) {
  const ModelCase hungry{.name = "script", .spec = {.path = script(1 << 20)}, .input = {1, 12, 12, 5, 0}};
  const RunReport report = run(job_of(hungry), 0, 900'000);
  EXPECT_EQ(report.devices[1].samples, 0);
  EXPECT_EQ(report.devices[0].samples, kSamples);
  EXPECT_EQ(report.oom_steps, 0);
}

}  // namespace
}  // namespace remuda::train
