// Ranks without samples in a step: whatever they hold, it is no gradient.
#include <cmath>
#include <gtest/gtest.h>
#include <optional>

#include "comm/testing/run_ranks.h"
#include "train/data_parallel.h"
#include "train/testing/parallel.h"

namespace remuda::train {
namespace {

using Transport = comm::ConnectOptions::Transport;

TEST(SilentRanks, HoldNoGradientWhateverIsThere) {
  for (const auto transport : {comm::kSharedMemory, Transport::tcp})
    run_ranks(2, transport, [](comm::Communicator& communicator) {
      const std::vector weights{torch::ones({3}, torch::requires_grad()), torch::ones({5}, torch::requires_grad())};
      const auto backward = [&] { (weights[0].sum() + weights[1].sum()).backward(); };
      const auto has_stepped = [&](int steps) {
        return weights[0].eq(1 - steps).all().item<bool>() && weights[1].eq(1 - steps).all().item<bool>();
      };
      const auto parallel =
          DataParallel::create(communicator, testing::cpu_ops(), weights, backward, {.bucket_bytes = 1}).value();
      const bool is_silent = communicator.rank() == 1;
      for (int step = 1; step <= 2; ++step) {
        ASSERT_TRUE(parallel->set_silent({false, true}));
        parallel->begin({.weight = is_silent ? 0.0 : 1.0});
        if (is_silent)
          for (const torch::Tensor& weight : weights) weight.mutable_grad().fill_(NAN);
        else
          backward();
        const auto reduced = testing::reduce_and_update(*parallel, 1);
        ASSERT_TRUE(reduced);
        EXPECT_TRUE(reduced->stands);
        EXPECT_TRUE(has_stepped(step));
      }
      ASSERT_TRUE(parallel->set_silent({}));
      parallel->begin({.weight = 1});
      (weights[0].sum() + weights[1].sum()).backward();
      ASSERT_TRUE(testing::reduce_and_update(*parallel, 1));
      EXPECT_TRUE(has_stepped(3)) << "what it held is gone";
    });
}

/// Three ranks, of which the last has everything, and then not: what the others have when they get it.
class OneRank : public ::testing::TestWithParam<std::optional<torch::ScalarType>> {
 protected:
  /// As many steps of that rank with a gradient of 1, each of rate 1; the weights began at 0.
  static void step_alone(DataParallel& parallel, const torch::Tensor& weight, int rank, int steps) {
    for (int i = 0; i < steps; ++i) {
      ASSERT_TRUE(parallel.set_silent({true, true, false}));
      EXPECT_TRUE(parallel.is_of_one());
      parallel.begin({.weight = rank == 2 ? 1.0 : 0.0});
      if (rank == 2) weight.sum().backward();
      const auto step = parallel.reduce();
      ASSERT_TRUE(step) << step.error().message;
      EXPECT_NEAR(step->norm, std::sqrt(64.0), 1e-9) << "all ranks know it";
      ASSERT_TRUE(parallel.start_update(*step, {{1, 0}}));
    }
  }

  static void with_ranks(const std::function<void(DataParallel&, const torch::Tensor& weight, int rank)>& test) {
    run_ranks(3, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const auto weight = torch::zeros({64}, torch::requires_grad());
      const auto parallel =
          DataParallel::create(communicator, testing::cpu_ops(), {weight}, [&] { weight.sum().backward(); },
                               {.average = 0.5, .state_shares = {0, 0, 1}, .sent_as = GetParam()});
      test(*parallel.value(), weight, communicator.rank());
    });
  }

  static bool is(const torch::Tensor& weight, double value) { return weight.eq(value).all().item<bool>(); }
};

INSTANTIATE_TEST_SUITE_P(SentAs, OneRank, ::testing::Values(std::nullopt, torch::kBFloat16));

TEST_P(OneRank, GivesTheOthersItsParametersWhenTheyAskForThem) {
  with_ranks([](DataParallel& parallel, const torch::Tensor& weight, int rank) {
    step_alone(parallel, weight, rank, 3);
    EXPECT_TRUE(is(weight, rank == 2 ? -3 : 0)) << "nothing was sent";
    ASSERT_TRUE(parallel.arrive());
    EXPECT_TRUE(is(weight, -3));
    step_alone(parallel, weight, rank, 1);
    ASSERT_TRUE(parallel.check_parameters(4));
    EXPECT_TRUE(is(weight, -4));
  });
}

TEST_P(OneRank, GivesThemBeforeTheyCompute) {
  with_ranks([](DataParallel& parallel, const torch::Tensor& weight, int rank) {
    step_alone(parallel, weight, rank, 3);
    ASSERT_TRUE(parallel.set_silent({true, false, false}));
    EXPECT_FALSE(parallel.is_of_one());
    EXPECT_TRUE(is(weight, -3));
    parallel.begin({.weight = rank == 0 ? 0.0 : 1.0});
    if (rank > 0) weight.sum().backward();
    const auto step = parallel.reduce();
    ASSERT_TRUE(step) << step.error().message;
    ASSERT_TRUE(parallel.update(*step, {{1, 0}}));
    EXPECT_TRUE(is(weight, -4)) << "the mean of both";
  });
}

TEST_P(OneRank, GivesThemBeforeTheyOwnAnything) {
  with_ranks([](DataParallel& parallel, const torch::Tensor& weight, int rank) {
    step_alone(parallel, weight, rank, 2);
    const std::vector<double> even{1, 1, 1};
    EXPECT_EQ(parallel.divide(even), true);
    EXPECT_FALSE(parallel.is_of_one()) << "others own parts of it";
    EXPECT_TRUE(is(weight, -2));
  });
}

TEST_P(OneRank, GivesThemWithAStepThatIsToEndWithThem) {
  with_ranks([](DataParallel& parallel, const torch::Tensor& weight, int rank) {
    step_alone(parallel, weight, rank, 2);
    parallel.begin({.weight = rank == 2 ? 1.0 : 0.0});
    if (rank == 2) weight.sum().backward();
    const auto step = parallel.reduce();
    ASSERT_TRUE(step) << step.error().message;
    ASSERT_TRUE(parallel.update(*step, {{1, 0}}));
    EXPECT_TRUE(is(weight, -3));
  });
}

/// At the end of a run, what the others keep and test with.
TEST_P(OneRank, GivesThemWhatItAloneKeeps) {
  with_ranks([](DataParallel& parallel, const torch::Tensor& weight, int rank) {
    for (const double rate : {1.0, 0.5, 1e-3}) {
      ASSERT_TRUE(parallel.set_silent({true, true, false}));
      parallel.begin({.weight = rank == 2 ? 1.0 : 0.0});
      if (rank == 2) weight.sum().backward();
      const auto step = parallel.reduce();
      ASSERT_TRUE(step) << step.error().message;
      ASSERT_TRUE(parallel.start_update(*step, {{rate, 0}}));
    }
    ASSERT_TRUE(parallel.swap_average());
    EXPECT_NEAR(weight[0].item<double>(), (-1.25 - 1.501) / 2, 4e-3) << "the average, perhaps in bfloat16";
    ASSERT_TRUE(parallel.swap_average());
    ASSERT_TRUE(parallel.send_unrounded());
    EXPECT_NEAR(weight[0].item<double>(), -1.501, 1e-6) << "as the owner keeps it";
    EXPECT_TRUE(parallel.is_of_one()) << "and goes on as it was";
  });
}

/// Parameters of a step that all made are under way when the next one is of one rank.
TEST_P(OneRank, BeginsOnceWhatIsUnderWayHasArrived) {
  with_ranks([](DataParallel& parallel, const torch::Tensor& weight, int rank) {
    ASSERT_TRUE(parallel.set_silent({}));
    parallel.begin({.weight = 1});
    weight.sum().backward();
    const auto step = parallel.reduce();
    ASSERT_TRUE(step) << step.error().message;
    ASSERT_TRUE(parallel.start_update(*step, {{1, 0}}));
    step_alone(parallel, weight, rank, 1);
    EXPECT_TRUE(is(weight, rank == 2 ? -2 : -1));
  });
}

}  // namespace
}  // namespace remuda::train
