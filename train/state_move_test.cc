// What ranks own goes to other owners between two steps, and no bit of what they learn changes.
#include "train/state_move.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <torch/script.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/data_files.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

/// Weights of which some are 0, but not all.
std::vector<double> any_weights(std::mt19937& random, int ranks) {
  std::vector<double> weights;
  for (int rank = 0; rank < ranks; ++rank) weights.push_back(double(random() % 4));
  weights[random() % size_t(ranks)] += 1;
  return weights;
}

/// Each element has its own number.
torch::Tensor numbers_of(const FlatLayout& layout, int rank) {
  std::vector<torch::Tensor> parts{torch::empty({0})};
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket) {
    const comm::Chunk own = layout.own(bucket, rank);
    parts.push_back(torch::arange(int64_t(own.begin), int64_t(own.end), torch::kFloat));
  }
  return torch::cat(parts);
}

TEST(StateMove, BringsEachElementToItsNewOwner) {
  const std::vector<size_t> sizes{300, 17, 1, 900, 40}, groups(sizes.size(), 0);
  for (const int ranks : {1, 2, 3, 4}) {
    std::mt19937 random(uint32_t{7} + uint32_t(ranks));
    for (int round = 0; round < 6; ++round) {
      FlatLayout before(sizes, groups, {4, 1600, any_weights(random, ranks), {}}), after = before;
      after.divide(any_weights(random, ranks));
      run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
        const int rank = communicator.rank();
        const torch::Tensor to = torch::full({numbers_of(after, rank).numel()}, -1.0F);
        ASSERT_TRUE(move_state(communicator, before, after, numbers_of(before, rank), to));
        EXPECT_TRUE(to.equal(numbers_of(after, rank))) << "rank " << rank << " of " << ranks;
      });
    }
  }
}

class StateMoves : public ::testing::Test {
 protected:
  static constexpr int kEdge = 8, kSamples = 160;

  StateMoves() {
    job_.data = testing::write_samples(folder_, {.input = {1, kEdge, kEdge, 5, 0}}, kSamples);
    job_.data.test = job_.data.train;
    job_.train = {.epochs = 3,
                  .global_batch = 40,
                  .optimizer = job::Optimizer::adamw,
                  .learning_rate = 0.01,
                  .weight_decay = 0.1,
                  .average = 0.5,
                  .check_every = 1,
                  .bucket_mib = 0.002};
    job_.balance.policy = balance::BalancePolicy::even;
    use_model_of(20);
  }

  void use_model_of(int64_t hidden) {
    torch::jit::Module module("two_layers");
    const auto values = [](std::vector<int64_t> shape) {
      int64_t count = 1;
      for (const int64_t size : shape) count *= size;
      return torch::arange(count, torch::kFloat).sin().mul(0.1).view(shape).detach().requires_grad_();
    };
    module.register_parameter("first", values({hidden, kEdge * kEdge}), false);
    module.register_parameter("second", values({5, hidden}), false);
    module.define(
        "def forward(self, x):\n  return torch.matmul(torch.relu(torch.matmul(x.flatten(1), self.first.t())), "
        "self.second.t())\n");
    job_.model = {.path = folder_.path("model.pt")};
    module.save(job_.model.path);
  }

  struct Finished {
    RunReport report;
    std::vector<torch::Tensor> weights;
  };

  /// `every`: steps after which the parts move at random; 0: never.
  Finished run(int ranks, int every) {
    job_.devices.clear();
    for (int rank = 0; rank < ranks; ++rank) job_.devices.push_back({.use = "cpu:" + std::to_string(rank)});
    Finished finished;
    const std::atomic<bool> leave = false;
    const Events events(-1);
    run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      std::mt19937 random(uint32_t{3} + uint32_t(ranks));
      TrainerOptions options;
      if (every > 0)
        options.moves_state = [&](int step) {
          return step % every == 0 ? any_weights(random, ranks) : std::vector<double>();
        };
      const auto trainer = Trainer::create(job_, communicator, events, leave, options);
      ASSERT_TRUE(trainer) << trainer.error().message;
      const auto report = (*trainer)->run();
      ASSERT_TRUE(report) << report.error().message;
      if (communicator.rank() != 0) return;
      finished.report = *report;
      for (const auto& one : (*trainer)->model().parameters()) finished.weights.push_back(one.detach().clone());
    });
    return finished;
  }

  /// Of the state, that a device 60 times as slow owns when the run begins: most of a step is its update.
  double part_of_a_slow_device() {
    job_.train.epochs = 1;
    job_.train.global_batch = 2;
    job_.train.max_steps = 2;
    use_model_of(2000);
    job_.devices = {{.use = "cpu:0"}, {.use = "cpu:1", .slowdown = 60}};
    double part = 1;
    const std::atomic<bool> leave = false;
    const Events events(-1);
    run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const auto trainer = Trainer::create(job_, communicator, events, leave);
      ASSERT_TRUE(trainer) << trainer.error().message;
      const FlatLayout& layout = (*trainer)->parameters().layout();
      if (communicator.rank() == 0) part = double(layout.owned(1)) / double(layout.count());
      ASSERT_TRUE((*trainer)->run());
    });
    return part;
  }

  static void expect_the_same(const Finished& found, const Finished& expected) {
    ASSERT_EQ(found.weights.size(), expected.weights.size());
    for (size_t i = 0; i < found.weights.size(); ++i) EXPECT_TRUE(found.weights[i].equal(expected.weights[i])) << i;
    EXPECT_EQ(found.report.loss_per_epoch, expected.report.loss_per_epoch);
    EXPECT_EQ(found.report.test->loss, expected.report.test->loss) << "of the average";
  }

  const ScratchFolder folder_;
  job::TrainJob job_;
};

TEST_F(StateMoves, ChangeNoBitOfWhatIsLearned) {
  for (const int ranks : {2, 3, 4}) {
    const Finished expected = run(ranks, 0), found = run(ranks, 2);
    EXPECT_EQ(expected.report.state_moves, 0);
    EXPECT_GE(found.report.state_moves, 4) << ranks;
    expect_the_same(found, expected);
  }
}

TEST_F(StateMoves, ChangeNoBitWithMomentum) {
  job_.train.optimizer = job::Optimizer::sgd;
  job_.train.momentum = 0.9;
  job_.train.average = 0;
  expect_the_same(run(3, 1), run(3, 0));
}

TEST_F(StateMoves, ChangeNoBitWhereParametersAreSentRounded) {
  job_.train.precision = job::Precision::bf16;
  expect_the_same(run(3, 2), run(3, 0));
}

TEST_F(StateMoves, ChangeNoBitWithCopiesForABuddy) {
  job_.elastic.ranks_lost = 1;
  const Finished found = run(3, 1);
  EXPECT_GE(found.report.state_moves, 4);
  job_.elastic.ranks_lost = 0;
  expect_the_same(found, run(3, 0));
}

TEST_F(StateMoves, ChangeNoBitOfWhatACheckpointKeeps) {
  const Finished expected = run(3, 0);
  job_.checkpoint.folder = folder_.path("kept");
  job_.checkpoint.every_steps = 1;
  job_.train.max_steps = 7;
  EXPECT_GE(run(4, 1).report.checkpoints.written, 1);
  job_.train.max_steps = 0;
  job_.checkpoint.resume = job::Switch::on;
  const Finished rest = run(2, 2);
  EXPECT_GE(rest.report.checkpoints.resumed_from, 1);
  EXPECT_EQ(rest.report.steps, expected.report.steps);
  for (size_t i = 0; i < rest.weights.size(); ++i)
    EXPECT_TRUE(rest.weights[i].allclose(expected.weights[i], 1e-5, 1e-6))
        << "sums of two ranks and of three round unlike";
}

TEST_F(StateMoves, DoNotHappenWhereTheJobGivesTheParts) {
  job_.balance.state_shares = {1, 3};
  const Finished found = run(2, 1);
  EXPECT_EQ(found.report.state_moves, 0);
  EXPECT_NEAR(found.report.devices[1].state_share, 0.75, 0.05);
}

TEST_F(StateMoves, ASlowDeviceOwnsLittleFromTheStart) {
  job_.balance.policy = balance::BalancePolicy::automatic;
  EXPECT_LT(part_of_a_slow_device(), 0.2) << "by its update, 60 times as long";
}

TEST_F(StateMoves, ASplitThatIsGivenHasTheSameOwnersEachTime) {
  job_.balance = {balance::BalancePolicy::fixed, {1, 1}};
  EXPECT_NEAR(part_of_a_slow_device(), 0.5, 0.05) << "whatever was measured";
}

}  // namespace
}  // namespace remuda::train
