#include "train/gradient_reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/cases.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;
constexpr auto kShm = comm::ConnectOptions::Transport::shared_memory;

std::vector<torch::Tensor> two_weights(double value = 1) {
  return {torch::full({3}, value, torch::requires_grad()), torch::full({5}, value, torch::requires_grad())};
}

std::unique_ptr<GradientReducer> make_reducer(comm::Communicator& communicator,
                                              const std::vector<torch::Tensor>& weights) {
  return GradientReducer::create(communicator, weights, [&] { (weights[0].sum() + weights[1].sum()).backward(); },
                                 {.bucket_bytes = 1})
      .value();
}

StepTail tail_of(comm::Communicator& communicator, double weight) {
  StepTail tail(communicator.size());
  tail.weight = weight;
  tail.loss_sum = weight;
  return tail;
}

TEST(GradientReducer, RankWithNothingToGiveTakesPart) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto reducer = make_reducer(communicator, weights);
    const bool gives = communicator.rank() == 0;
    reducer->begin(tail_of(communicator, gives ? 4 : 0));
    if (gives) ((weights[0] * 8).sum() + weights[1].sum()).backward();
    const auto step = reducer->finish();
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_TRUE(step->stands);
    EXPECT_TRUE(weights[0].grad().eq(2).all().item<bool>());
    EXPECT_TRUE(weights[1].grad().eq(0.25).all().item<bool>());
  });
}

TEST(GradientReducer, NobodyCountsSoNothingIsApplied) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    const auto reducer = make_reducer(communicator, two_weights());
    reducer->begin(tail_of(communicator, 0));
    const auto step = reducer->finish();
    ASSERT_TRUE(step);
    EXPECT_FALSE(step->stands);
    EXPECT_TRUE(step->finite);
  });
}

TEST(GradientReducer, UnusedParameterGetsZero) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto reducer = make_reducer(communicator, weights);
    reducer->begin(tail_of(communicator, 1));
    weights[1].sum().backward();
    ASSERT_TRUE(reducer->finish());
    EXPECT_TRUE(weights[0].grad().eq(0).all().item<bool>());
    EXPECT_TRUE(weights[1].grad().eq(1).all().item<bool>());
  });
}

/// The first of three parameters is never used; the buckets of the others are sent while backward() runs.
TEST(GradientReducer, UnusedParameterDelaysNoBucketOfTheOthers) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    auto weights = two_weights();
    weights.push_back(torch::ones({4}, torch::requires_grad()));
    int left = 0;
    const auto backward = [&] { (weights[1].sum() + weights[2].sum()).backward(); };
    const auto reducer = GradientReducer::create(communicator, weights, backward,
                                                 {.bucket_bytes = 1, .before_launch = [&left] { ++left; }})
                             .value();
    ASSERT_EQ(reducer->buckets(), 3u);
    reducer->begin(tail_of(communicator, 1));
    backward();
    EXPECT_EQ(left, 2) << "only the last bucket, that of the unused parameter, waits for finish()";
    ASSERT_TRUE(reducer->finish());
    EXPECT_EQ(left, 3);
    EXPECT_TRUE(weights[0].grad().eq(0).all().item<bool>());
  });
}

TEST(GradientReducer, RankThatGivesUpHalfWayDiscardsTheStepForAll) {
  run_ranks(3, kShm, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto reducer = make_reducer(communicator, weights);
    reducer->begin(tail_of(communicator, 1));
    weights[0].sum().backward();
    if (communicator.rank() == 1)
      reducer->give_up(kOutOfMemory);
    else
      weights[1].sum().backward();
    const auto step = reducer->finish();
    ASSERT_TRUE(step);
    EXPECT_FALSE(step->stands);
    EXPECT_EQ(step->totals.first_with(kOutOfMemory), 1);
    EXPECT_EQ(step->totals.weight, 2);

    reducer->begin(tail_of(communicator, 1));
    (weights[0].sum() + weights[1].sum()).backward();
    EXPECT_TRUE(reducer->finish()->stands) << "the next step is clean";
    EXPECT_TRUE(weights[0].grad().eq(1).all().item<bool>());
  });
}

/// Expects this error of finish() on both of two ranks, after a step in which `misuse` happened between begin() and
/// finish() only on rank 1.
void expect_refused(const std::string& sentence, const std::function<void(const std::vector<torch::Tensor>&)>& misuse) {
  run_ranks(2, kShm, [&](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto reducer = make_reducer(communicator, weights);
    reducer->begin(tail_of(communicator, 1));
    if (communicator.rank() == 1)
      misuse(weights);
    else
      (weights[0].sum() + weights[1].sum()).backward();
    const auto step = reducer->finish();
    ASSERT_FALSE(step) << "rank " << communicator.rank();
    EXPECT_EQ(step.error().kind, ErrorKind::usage);
    EXPECT_THAT(step.error().message, HasSubstr("on rank 1 "));
    EXPECT_THAT(step.error().message, HasSubstr(sentence));
  });
}

TEST(GradientReducer, TwoBackwardsInOneStepAreRefusedOnAllRanks) {
  expect_refused("backward() ran twice", [](const auto& weights) {
    (weights[0].sum() + weights[1].sum()).backward();
    (weights[0].sum() + weights[1].sum()).backward();
  });
}

TEST(GradientReducer, ParameterThatBecomesReadyTwiceIsRefusedThoughItsBucketHasNotLeft) {
  expect_refused("became ready twice", [](const auto& weights) {
    const auto& last = weights[1];  // in the last bucket, which waits for finish()
    last.sum().backward();
    last.sum().backward();
  });
}

TEST(GradientReducer, SharedWeightInOneGraphIsReadyOnce) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto reducer = make_reducer(communicator, weights);
    reducer->begin(tail_of(communicator, 1));
    (weights[0].sum() + (weights[0] * 2).sum() + weights[1].sum()).backward();
    const auto step = reducer->finish();
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_TRUE(weights[0].grad().eq(3).all().item<bool>());
  });
}

TEST(GradientReducer, GradientsThatWereResetInTheStepAreRefusedOnAllRanks) {
  const auto reset = [](const std::vector<torch::Tensor>& weights) {
    for (const auto& weight : weights) weight.mutable_grad() = torch::Tensor();
  };
  expect_refused("reset or replaced between begin() and finish()", [&](const auto& weights) {
    reset(weights);
    (weights[0].sum() + weights[1].sum()).backward();
  });
  expect_refused("reset or replaced between begin() and finish()", [&](const auto& weights) {
    (weights[0].sum() + weights[1].sum()).backward();
    reset(weights);
  });
}

TEST(GradientReducer, GradientsThatWereResetBetweenStepsAreInPlaceAgain) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto reducer = make_reducer(communicator, weights);
    for (const auto& weight : weights) weight.mutable_grad() = torch::Tensor();
    reducer->begin(tail_of(communicator, 1));
    (weights[0].sum() + weights[1].sum()).backward();
    const auto step = reducer->finish();
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_TRUE(weights[0].grad().eq(1).all().item<bool>());
  });
}

TEST(GradientReducer, TrialStepWithTwoBackwardsIsRefused) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto reducer = GradientReducer::create(communicator, weights, [&] {
      weights[0].sum().backward();
      weights[0].sum().backward();
    });
    ASSERT_FALSE(reducer);
    EXPECT_THAT(reducer.error().message, HasSubstr("in the trial step the gradient of a parameter became ready twice"));
  });
}

TEST(GradientReducer, GradientThatIsNotFiniteStopsTheStepEverywhere) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto reducer = make_reducer(communicator, weights);
    reducer->begin(tail_of(communicator, 1));
    const double factor = communicator.rank() == 1 ? INFINITY : 1.0;
    (weights[0] * factor).sum().backward();
    const auto step = reducer->finish();
    ASSERT_TRUE(step);
    EXPECT_FALSE(step->finite);
    EXPECT_FALSE(step->stands);
  });
}

TEST(GradientReducer, AllRanksStartFromRankZerosValues) {
  run_ranks(3, kShm, [](comm::Communicator& communicator) {
    const auto weights = two_weights(communicator.rank() + 1);
    const auto reducer = make_reducer(communicator, weights);
    EXPECT_TRUE(weights[0].eq(1).all().item<bool>());
    EXPECT_TRUE(reducer->check_parameters(0));
  });
}

TEST(GradientReducer, ParametersThatDriftApartAreFound) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto reducer = make_reducer(communicator, weights);
    torch::NoGradGuard no_grad;
    if (communicator.rank() == 1) reducer->flat().values()[-1] += 1e-6;
    const auto checked = reducer->check_parameters(40);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().message, HasSubstr("after step 40 the parameters of rank 1 and rank 0 differ"));
    EXPECT_THAT(checked.error().message, HasSubstr("both compute with the same kernels (cpu, "));
  });
}

TEST(GradientReducer, ModelsOfUnlikeShapesAreRefused) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    const std::vector weights{torch::zeros({communicator.rank() == 0 ? 3 : 4}, torch::requires_grad())};
    const auto reducer = GradientReducer::create(communicator, weights, [&] { weights[0].sum().backward(); });
    ASSERT_FALSE(reducer);
    EXPECT_THAT(reducer.error().message, HasSubstr("of rank 1 and rank 0 differ"));
  });
}

TEST(GradientReducer, OrderOfRankZeroHoldsForAll) {
  run_ranks(2, kShm, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto backward = [&] {  // rank 1 finishes its gradients in the other order
      weights[communicator.rank()].sum().backward();
      weights[1 - communicator.rank()].sum().backward();
    };
    const auto reducer = GradientReducer::create(communicator, weights, backward, {.bucket_bytes = 1}).value();
    EXPECT_EQ(reducer->flat().parameters()[0].numel(), 3);
    reducer->begin(tail_of(communicator, 1));
    backward();
    ASSERT_TRUE(reducer->finish());
    EXPECT_TRUE(weights[1].grad().eq(1).all().item<bool>());
  });
}

TEST(GradientReducer, MixedTypesAreRefusedByName) {
  run_ranks(1, comm::ConnectOptions::Transport::automatic, [](comm::Communicator& communicator) {
    const std::vector weights{torch::zeros({2}, torch::requires_grad()),
                              torch::zeros({2}, torch::dtype(torch::kDouble).requires_grad(true))};
    const auto reducer = GradientReducer::create(communicator, weights, [] {});
    ASSERT_FALSE(reducer);
    EXPECT_EQ(reducer.error().message, "parameters mix Float and Double; they must have one type");
  });
}

}  // namespace
}  // namespace remuda::train
