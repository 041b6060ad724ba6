// Whole runs in micro-batches: each device normalises equally many samples at a time, so that what is trained does not
// depend on the split, batch norm included.
#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <torch/script.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/capped_memory.h"
#include "train/testing/data_files.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;

constexpr const char* kNormalisingForward = R"(
def forward(self, x):
  hidden = torch.matmul(x.flatten(1), self.up.t())
  hidden = torch.batch_norm(hidden, self.scale, self.shift, self.running_mean, self.running_var, self.training, 0.1, 1e-5, False)
  return torch.matmul(torch.tanh(hidden), self.down.t())
)";

class MicroBatches : public ::testing::Test {
 protected:
  static constexpr int kSide = 12, kBatch = 96, kMicroBatch = 16, kImages = 2 * kBatch + 40;

  MicroBatches() {
    job_.data = testing::write_samples(folder_, {.input = {1, kSide, kSide, 5, 0}}, kImages);
    job_.data.test = job_.data.train;
    job_.train = {.epochs = 2, .global_batch = kBatch, .micro_batch = kMicroBatch, .learning_rate = 0.01};
    job_.balance.unit = job::Unit::microbatches;
    torch::jit::Module module("normalising");
    const auto weight = [](int64_t out, int64_t in) {
      return torch::arange(out * in, torch::kFloat).sin().mul(0.1).view({out, in}).requires_grad_();
    };
    module.register_parameter("up", weight(32, kSide * kSide), false);
    module.register_parameter("down", weight(5, 32), false);
    module.register_parameter("scale", torch::ones({32}, torch::requires_grad()), false);
    module.register_parameter("shift", torch::zeros({32}, torch::requires_grad()), false);
    module.register_buffer("running_mean", torch::zeros({32}));
    module.register_buffer("running_var", torch::ones({32}));
    module.register_attribute("training", c10::BoolType::get(), true);
    module.define(kNormalisingForward);
    job_.model = {.path = folder_.path("model.pt")};
    module.save(job_.model.path);
  }

  struct Finished {
    RunReport report;  ///< of rank 0
    std::vector<torch::Tensor> parameters;
    size_t kept = 0, peak = 0;  ///< bytes of the last rank: before the first step, and at most
    std::string error;
  };

  /// The last rank has `room` bytes besides what it has before the first step.
  Finished run(std::vector<double> shares, size_t room = SIZE_MAX) {
    const int ranks = int(shares.size());
    job_.devices.clear();
    for (int rank = 0; rank < ranks; ++rank) job_.devices.push_back({"cpu:" + std::to_string(rank)});
    job_.balance.policy = balance::BalancePolicy::fixed;
    job_.balance.shares = std::move(shares);
    Finished finished;
    std::deque<testing::Budget>& budgets = budgets_.emplace_back(size_t(ranks));
    const std::atomic<bool> leave = false;
    const Events events(-1);
    run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      testing::Budget& budget = budgets[size_t(rank)];
      const testing::OnDevice device(budget);
      const auto trainer = Trainer::create(job_, communicator, events, leave).value();
      const size_t kept = budget.used;
      budget.peak = kept;
      if (rank == ranks - 1 && room < SIZE_MAX) budget.cap = kept + room;
      const auto report = trainer->run();
      if (rank == ranks - 1) finished.kept = kept, finished.peak = budget.peak;
      if (rank == 0 && !report) finished.error = report.error().message;
      if (rank != 0 || !report) return;
      finished.report = *report;
      for (const auto& parameter : trainer->parameters().parameters())
        finished.parameters.push_back(parameter.detach().clone());
    });
    return finished;
  }

  const testing::CappedMemory counted_;
  const ScratchFolder folder_;
  job::TrainJob job_;
  std::deque<std::deque<testing::Budget>> budgets_;  ///< they outlive what was allocated on them
};

// 1e-6: sums of float32 in another order. The last step of an epoch has two micro-batches, and one of 8 samples.
TEST_F(MicroBatches, TrainTheSameWeightsWhateverTheSplit) {
  const Finished one = run({1});
  ASSERT_EQ(one.error, "");
  EXPECT_EQ(one.report.steps, 2 * 3);
  for (const std::vector<double>& shares : {std::vector<double>{1, 1}, {5, 1}, {1, 3, 2}, {1, 20}, {1, 1, 1, 2, 1}}) {
    SCOPED_TRACE(::testing::PrintToString(shares));
    const Finished many = run(shares);
    ASSERT_EQ(many.error, "");
    EXPECT_LT(testing::relative_error(many.parameters, one.parameters), 1e-6);
    double samples = 0, pieces = 0;
    for (const DeviceReport& device : many.report.devices) {
      samples += device.samples;
      pieces += device.share * kBatch / kMicroBatch;
      EXPECT_EQ(device.pieces, std::max(1.0, device.share * kBatch / kMicroBatch));
    }
    EXPECT_EQ(samples, 2 * kImages);
    EXPECT_EQ(pieces, kBatch / kMicroBatch);
    EXPECT_EQ(many.report.batch_norm, "local");
    EXPECT_EQ(to_json(many.report)["balance"]["micro_batch"], kMicroBatch);
  }
  EXPECT_EQ(run({1, 20}).report.devices[0].samples, 0) << "a device may have none";
}

TEST_F(MicroBatches, AreWhatMakesBatchNormTheSame) {
  job_.balance.unit = job::Unit::samples;
  job_.train.micro_batch = 0;
  EXPECT_GT(testing::relative_error(run({5, 1}).parameters, run({1}).parameters), 1e-3);
}

TEST_F(MicroBatches, ADeviceThatRunsOutOfMemoryGetsFewerAndTheSameIsTrained) {
  const Finished roomy = run({1, 1});
  const Finished tight = run({1, 1}, (roomy.peak - roomy.kept) / 4);
  ASSERT_EQ(tight.error, "");
  EXPECT_GT(tight.report.oom_steps, 0);
  EXPECT_EQ(tight.report.devices[1].share, 0);
  EXPECT_EQ(tight.report.devices[1].samples, 0);
  EXPECT_EQ(tight.report.devices[0].pieces, kBatch / kMicroBatch);
  EXPECT_LT(testing::relative_error(tight.parameters, roomy.parameters), 1e-6);
}

TEST_F(MicroBatches, ThatFitOnNoDeviceEndTheRunWithASentence) {
  EXPECT_EQ(run({1}, 1000).error,
            "rank 0 (cpu:0) ran out of memory in micro-batches of 16 samples; use a smaller train.micro_batch");
}

}  // namespace
}  // namespace remuda::train
