#include "train/running_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "comm/testing/run_ranks.h"

namespace remuda::train {
namespace {

constexpr int64_t kChannels = 3;

NormStatistics statistics(std::optional<double> momentum, bool has_counter = true) {
  return {.mean = torch::zeros({kChannels}),
          .variance = torch::ones({kChannels}),
          .batches = has_counter ? torch::zeros({}, torch::kLong) : torch::Tensor(),
          .momentum = momentum};
}

/// What a batch says, in float64.
torch::Tensor said(int64_t batch) {
  return (torch::arange(kChannels, torch::kDouble) + 1) * std::sin(1.3 * double(batch) + 0.2) + 2;
}

/// As PyTorch counts a batch; `moves`: the counter, which it does not for instance norm.
void count_batch(NormStatistics& norm, int64_t batch, bool moves = true) {
  if (norm.batches.defined() && moves) norm.batches.add_(1);
  const double part = norm.momentum ? *norm.momentum : 1 / norm.batches.item<double>();
  for (const torch::Tensor& one : {norm.mean, norm.variance})
    torch::Tensor(one).mul_(1 - part).add_(said(batch).to(one.scalar_type()), part);
}

/// One device, in float64, apart from all code here: the batches one after another.
torch::Tensor counted_by_one(std::optional<double> momentum, double begin, int64_t batches) {
  torch::Tensor value = torch::full({kChannels}, begin, torch::kDouble);
  for (int64_t i = 0; i < batches; ++i) {
    const double part = momentum ? *momentum : 1 / double(i + 1);
    value = value + part * (said(i) - value);
  }
  return value;
}

// 1e-6, absolute, of values near 2: each step rounds to float32 once more.
TEST(RunningStatistics, AreThoseOfOneDeviceHoweverBatchesAreDivided) {
  std::mt19937 random(11);
  for (const std::optional<double> momentum : {std::optional(0.1), std::optional(0.9), std::optional<double>()})
    for (const bool has_counter : {true, false}) {
      if (!has_counter && !momentum) continue;
      for (int ranks = 1; ranks <= 4; ++ranks) {
        std::vector<std::vector<int>> steps;
        for (int step = 0; step < 6; ++step) {
          std::vector<int>& pieces = steps.emplace_back();
          for (int rank = 0; rank < ranks; ++rank) pieces.push_back(int(random() % 4));
        }
        run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
          NormStatistics own = statistics(momentum, has_counter), other = statistics(0.5, has_counter);
          RunningStatistics running({own, other});
          int64_t batch = 0;
          for (const std::vector<int>& pieces : steps) {
            running.keep();
            for (int rank = 0; rank < ranks; ++rank)
              for (int i = 0; i < pieces[size_t(rank)]; ++i, ++batch) {
                if (rank != communicator.rank()) continue;
                count_batch(own, batch);
                count_batch(other, batch);
              }
            ASSERT_TRUE(running.join(communicator, pieces));
            const auto expected = counted_by_one(momentum, 0, batch);
            EXPECT_LT((own.mean - expected).abs().max().item<double>(), 1e-6) << batch;
            EXPECT_LT((own.variance - counted_by_one(momentum, 1, batch)).abs().max().item<double>(), 1e-6) << batch;
            EXPECT_LT((other.mean - counted_by_one(0.5, 0, batch)).abs().max().item<double>(), 1e-6) << batch;
            if (!has_counter) continue;
            EXPECT_EQ(own.batches.item<int64_t>(), batch);
          }
        });
      }
    }
}

TEST(RunningStatistics, WhoseCounterStandsStillCountThePieces) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    NormStatistics norm = statistics(0.1);
    RunningStatistics running({norm});
    running.keep();
    for (int64_t batch = 0; batch < 5; ++batch)
      if ((batch < 2) == (communicator.rank() == 0)) count_batch(norm, batch, false);
    ASSERT_TRUE(running.join(communicator, {2, 3}));
    EXPECT_LT((norm.mean - counted_by_one(0.1, 0, 5)).abs().max().item<double>(), 1e-6);
    EXPECT_EQ(norm.batches.item<int64_t>(), 0);
  });
}

TEST(RunningStatistics, AreTheSameWhereAllThatAreJoinedAre) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    NormStatistics unknown = statistics(0.1), norm = statistics(0.1);
    unknown.is_known = false;
    unknown.mean.fill_(communicator.rank());
    RunningStatistics running({unknown, norm});
    EXPECT_EQ(running.are_the_same(communicator), true);
    if (communicator.rank() == 1) norm.variance[1] += 1e-6;
    EXPECT_EQ(running.are_the_same(communicator), false);
  });
}

TEST(RunningStatistics, OfAStepThatIsDroppedAreAsBefore) {
  NormStatistics norm = statistics(0.1), unknown = statistics(0.1);
  unknown.is_known = false;
  RunningStatistics running({unknown, norm});
  count_batch(norm, 0);
  count_batch(unknown, 0);
  running.keep();
  const torch::Tensor mean = norm.mean.clone(), of_unknown = unknown.variance.clone();
  for (NormStatistics* one : {&norm, &unknown}) {
    count_batch(*one, 1);
    one->variance.fill_(NAN);
  }
  running.restore();
  EXPECT_TRUE(norm.mean.equal(mean));
  EXPECT_TRUE(unknown.variance.equal(of_unknown));
  EXPECT_EQ(norm.batches.item<int64_t>(), 1);
}

TEST(RunningStatistics, WhoseMomentumIsNotKnownAreNotJoined) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    NormStatistics unknown = statistics(0.1), norm = statistics(0.1);
    unknown.is_known = false;
    RunningStatistics running({unknown, norm});
    count_batch(norm, communicator.rank());
    count_batch(unknown, communicator.rank());
    const torch::Tensor mine = unknown.mean.clone();
    ASSERT_TRUE(running.join(communicator, {1, 1}));
    EXPECT_TRUE(unknown.mean.equal(mine));
    EXPECT_EQ(norm.batches.item<int64_t>(), 2);
    EXPECT_EQ(running.joined().size(), 3u);
  });
}

TEST(OrderedWeights, OfRanksWithoutBatchesAreNone) {
  const OrderedWeights weights = weights_in_order(0.1, 0, std::vector<int64_t>{0, 2, 0, 1});
  EXPECT_THAT(weights.ranks, ::testing::ElementsAre(0, 0.9, 0, 1));
  EXPECT_NEAR(weights.before, 0.9 * 0.9 * 0.9 - 0.9 * 0.81 - 0.9, 1e-15);
  EXPECT_EQ(weights_in_order(0.1, 5, std::vector<int64_t>{0, 0}).before, 1);
}

}  // namespace
}  // namespace remuda::train
