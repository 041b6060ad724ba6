// Whole runs in which one of three ranks runs out of memory: they train what a run with enough of it trains.
#include <deque>
#include <gtest/gtest.h>
#include <torch/script.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/capped_memory.h"
#include "train/testing/data_files.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

/// Its forward pass counts itself in a buffer while it trains, and takes 16 KiB for each sample in evaluation.
constexpr const char* kHungryForward = R"(
def forward(self, x):
  if self.training:
    self.passes.add_(1)
  else:
    x = x + torch.zeros([x.size(0), 4096]).sum()
  hidden = torch.tanh(torch.relu(torch.matmul(x.flatten(1), self.up.t())))
  return torch.matmul(torch.sin(hidden), self.down.t())
)";

class TrainerOutOfMemory : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3, kStarved = 2, kSide = 12, kImages = 1000, kBatch = 540, kStepsPerEpoch = 2;

  TrainerOutOfMemory() {
    job_.data = testing::write_samples(folder_, {.input = {1, kSide, kSide, 5, 0}}, kImages);
    job_.train = {.epochs = 2, .global_batch = kBatch, .learning_rate = 0.01};
    for (int rank = 0; rank < kRanks; ++rank) job_.devices.push_back({"cpu:" + std::to_string(rank)});
    job_.balance.policy = balance::BalancePolicy::even;
    torch::jit::Module module("two_layers");
    const auto weight = [](int64_t out, int64_t in) {
      return torch::arange(out * in, torch::kFloat).sin().mul(0.1).view({out, in}).requires_grad_();
    };
    module.register_parameter("up", weight(32, kSide * kSide), false);
    module.register_parameter("down", weight(5, 32), false);
    module.register_buffer("passes", torch::zeros({1}, torch::kLong));
    module.register_attribute("training", c10::BoolType::get(), true);
    module.define(kHungryForward);
    job_.model = {.path = folder_.path("model.pt")};
    module.save(job_.model.path);
  }

  struct Finished {
    RunReport report;  ///< of rank 0
    std::vector<torch::Tensor> parameters;
    int64_t passes = 0;
    size_t kept = 0, peak = 0;  ///< bytes of the starved rank: before the first step, and at most
  };

  /// The starved rank has `room` bytes besides what it has before the first step.
  Finished run(size_t room = SIZE_MAX) {
    Finished finished{.report = {.devices = std::vector<DeviceReport>(kRanks)}};
    std::deque<testing::Budget>& budgets = budgets_.emplace_back(size_t(kRanks));
    const std::atomic<bool> leave = false;
    const Events events(-1);
    run_ranks(kRanks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      testing::Budget& budget = budgets[size_t(rank)];
      const testing::OnDevice device(budget);
      const auto trainer = Trainer::create(job_, communicator, events, leave).value();
      const size_t kept = budget.used;
      budget.peak = kept;
      if (rank == kStarved && room < SIZE_MAX) budget.cap = kept + room;
      const auto report = trainer->run();
      ASSERT_TRUE(report) << report.error().message;
      if (rank == kStarved) finished.kept = kept, finished.peak = budget.peak;
      if (rank != 0) return;
      finished.report = *report;
      for (const auto& parameter : trainer->parameters().parameters())
        finished.parameters.push_back(parameter.detach().clone());
      finished.passes = trainer->model().buffers().at(0).item<int64_t>();
    });
    return finished;
  }

  /// What the forward pass of an even part takes at most.
  size_t forward_peak() {
    auto module = torch::jit::load(job_.model.path);
    const auto input = torch::zeros({kBatch / kRanks, 1, kSide, kSide});
    testing::Budget& budget = budgets_.emplace_back(1).front();
    const testing::OnDevice device(budget);
    const auto scores = module.forward({input}).toTensor();
    return budget.peak;
  }

  const testing::CappedMemory capped_;
  const ScratchFolder folder_;
  job::TrainJob job_;
  std::deque<std::deque<testing::Budget>> budgets_;  ///< they outlive what was allocated on them
};

// 1e-6: sums of float32 in another order.
TEST_F(TrainerOutOfMemory, InForwardOrBackwardComputesInSmallerPieces) {
  const Finished roomy = run();
  EXPECT_EQ(roomy.report.oom_steps, 0);
  const size_t whole = roomy.peak - roomy.kept, forward = forward_peak();
  ASSERT_GT(whole, forward + forward / 4);
  for (const size_t room : {forward / 2, forward + (whole - forward) / 2}) {
    SCOPED_TRACE(room < forward ? "in forward" : "in backward");
    const Finished tight = run(room);
    const DeviceReport& starved = tight.report.devices[kStarved];
    EXPECT_LE(tight.peak, tight.kept + room);
    EXPECT_GT(starved.pieces, 1);
    EXPECT_EQ(1 << tight.report.oom_steps, starved.pieces) << "twice as many each time";
    EXPECT_EQ(starved.oom_steps, tight.report.oom_steps);
    EXPECT_EQ(tight.report.devices[0].pieces, 1);
    EXPECT_EQ(tight.report.decisions.size(), 1u) << "the shares stay";
    EXPECT_EQ(tight.passes, 2 * kStepsPerEpoch) << "a repeated step counts once for the buffers";
    EXPECT_LT(testing::relative_error(tight.parameters, roomy.parameters), 1e-6);
  }
}

/// Of each piece its loss is kept, 4 bytes: what lacks then only a smaller part saves.
TEST_F(TrainerOutOfMemory, InSinglesGetsASmallerPart) {
  job_.memory.accumulate = kBatch / kRanks;
  job_.train.max_steps = 1;
  const Finished roomy = run();
  const Finished tight = run(roomy.peak - roomy.kept - 32);
  EXPECT_EQ(tight.report.oom_steps, 1);
  EXPECT_EQ(tight.report.devices[kStarved].pieces, 135) << "single samples still";
  ASSERT_EQ(tight.report.decisions.size(), 2u);
  EXPECT_EQ(tight.report.decisions.back().shares[kStarved], 135);
  EXPECT_EQ(tight.report.devices[0].samples + tight.report.devices[1].samples + tight.report.devices[2].samples, kBatch)
      << "each sample counts once";
  EXPECT_LT(testing::relative_error(tight.parameters, roomy.parameters), 1e-6);
}

TEST_F(TrainerOutOfMemory, InEvaluationGoesOnWithSmallerBatches) {
  job_.data.test = job_.data.train;
  const Finished roomy = run();
  job_.data.test.reset();
  const Finished untested = run();
  job_.data.test = job_.data.train;
  const size_t room = (untested.peak - untested.kept) + 100 * 1024;
  ASSERT_LT(room, roomy.peak - roomy.kept);
  job_.train.epochs = 1;
  const double once = run(room).report.devices[kStarved].oom_evaluations;
  EXPECT_GT(once, 1);
  job_.train.epochs = 2;
  const Finished tight = run(room);
  EXPECT_EQ(tight.report.oom_steps, 0);
  EXPECT_EQ(tight.report.devices[kStarved].oom_evaluations, once) << "the second evaluation knows";
  EXPECT_EQ(tight.report.devices[0].oom_evaluations, 0);
  EXPECT_NEAR(tight.report.test->loss, roomy.report.test->loss, 1e-6);
  EXPECT_LT(testing::relative_error(tight.parameters, roomy.parameters), 1e-6);
}

}  // namespace
}  // namespace remuda::train
