#include "train/data_parallel.h"

#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/parallel.h"

namespace remuda::train {
namespace {

using testing::cpu_ops;
using ::testing::HasSubstr;
using testing::reduce_and_update;
using Transport = comm::ConnectOptions::Transport;

std::vector<torch::Tensor> two_weights(double value = 1) {
  return {torch::full({3}, value, torch::requires_grad()), torch::full({5}, value, torch::requires_grad())};
}

std::unique_ptr<DataParallel> make_parallel(comm::Communicator& communicator,
                                            const std::vector<torch::Tensor>& weights) {
  return DataParallel::create(communicator, cpu_ops(), weights,
                              [&] { (weights[0].sum() + weights[1].sum()).backward(); }, {.bucket_bytes = 1})
      .value();
}

StepReport report_of(double weight) { return {.weight = weight, .loss_sum = weight}; }

/// Whether a weight that was 1 has made a step of rate 1 along this gradient.
bool has_stepped(const torch::Tensor& weight, double gradient) {
  return (weight - (1 - gradient)).abs().max().item<double>() < 1e-6;
}

void set_to_one(const torch::Tensor& weight) {
  const torch::NoGradGuard no_grad;
  torch::Tensor(weight).fill_(1);
}

TEST(DataParallel, RankWithNothingToGiveTakesPart) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto parallel = make_parallel(communicator, weights);
    const bool gives = communicator.rank() == 0;
    parallel->begin(report_of(gives ? 4 : 0));
    if (gives) ((weights[0] * 8).sum() + weights[1].sum()).backward();
    const auto step = reduce_and_update(*parallel, 1);
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_TRUE(step->stands);
    EXPECT_TRUE(has_stepped(weights[0], 2));
    EXPECT_TRUE(has_stepped(weights[1], 0.25));
  });
}

TEST(DataParallel, NobodyCountsSoNothingIsApplied) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto parallel = make_parallel(communicator, two_weights());
    parallel->begin(report_of(0));
    const auto step = reduce_and_update(*parallel, 1);
    ASSERT_TRUE(step);
    EXPECT_FALSE(step->stands);
    EXPECT_TRUE(step->finite);
  });
}

TEST(DataParallel, UnusedParameterGetsZero) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto parallel = make_parallel(communicator, weights);
    parallel->begin(report_of(1));
    weights[1].sum().backward();
    ASSERT_TRUE(reduce_and_update(*parallel, 1));
    EXPECT_TRUE(has_stepped(weights[0], 0));
    EXPECT_TRUE(has_stepped(weights[1], 1));
  });
}

/// Begins a step whose gradient of all weights is 1.
ReducedStep reduced_step(DataParallel& parallel, const std::vector<torch::Tensor>& weights) {
  parallel.begin(report_of(1));
  (weights[0].sum() + weights[1].sum()).backward();
  return parallel.reduce().value();
}

TEST(DataParallel, AStartedUpdateWaitsForNobodyUntilItsParametersAreRead) {
  std::promise<void> has_started;
  run_ranks(2, Transport::tcp, [&](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto parallel = make_parallel(communicator, weights);
    EXPECT_EQ(parallel->watch_parameters(), nullptr) << "all are there";
    const ReducedStep step = reduced_step(*parallel, weights);
    if (communicator.rank() == 1) has_started.get_future().wait();
    ASSERT_TRUE(parallel->start_update(step, {{1, 0}}));
    EXPECT_EQ(parallel->wait_s(), 0);
    if (communicator.rank() == 0) has_started.set_value();
    {
      const auto watch = parallel->watch_parameters();
      ASSERT_NE(watch, nullptr);
      for (const torch::Tensor& weight : weights) EXPECT_TRUE(weight.detach().clone().equal(torch::zeros_like(weight)));
      const torch::Tensor read = torch::cat({weights[0], weights[1]});
      EXPECT_EQ(read.abs().max().item<double>(), 0) << "lists of tensors are read, too";
    }
    ASSERT_TRUE(parallel->arrive());
    EXPECT_EQ(parallel->watch_parameters(), nullptr);
    ASSERT_TRUE(parallel->check_parameters(1));
  });
}

TEST(DataParallel, WhoIsLostWhileParametersArriveIsNamedByTheNextStep) {
  run_ranks(2, Transport::tcp, [&](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto parallel = make_parallel(communicator, weights);
    const ReducedStep step = reduced_step(*parallel, weights);
    if (communicator.rank() == 1) return;
    ASSERT_TRUE(parallel->start_update(step, {{1, 0}}));
    parallel->begin(report_of(1));
    {
      const auto watch = parallel->watch_parameters();
      (weights[0].sum() + weights[1].sum()).backward();
    }
    const auto next = parallel->reduce();
    ASSERT_FALSE(next);
    EXPECT_EQ(next.error().peer, 1) << next.error().message;
  });
}

/// The first of three parameters is never used; the buckets of the others are sent while backward() runs.
TEST(DataParallel, UnusedParameterDelaysNoBucketOfTheOthers) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    auto weights = two_weights();
    weights.push_back(torch::ones({4}, torch::requires_grad()));
    int left = 0;
    const auto backward = [&] { (weights[1].sum() + weights[2].sum()).backward(); };
    const auto parallel = DataParallel::create(communicator, cpu_ops(), weights, backward,
                                               {.bucket_bytes = 1, .before_send = [&left] { ++left; }})
                              .value();
    ASSERT_EQ(parallel->flat().layout().buckets(), 3u);
    parallel->begin(report_of(1));
    backward();
    EXPECT_EQ(left, 2) << "only the last bucket, that of the unused parameter, waits for finish()";
    const auto step = parallel->reduce();
    ASSERT_TRUE(step);
    EXPECT_EQ(left, 3);
    ASSERT_TRUE(parallel->update(*step, {{1, 0}}));
    EXPECT_TRUE(has_stepped(weights[0], 0));
  });
}

TEST(DataParallel, RankThatGivesUpHalfWayDiscardsTheStepForAll) {
  run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto parallel = make_parallel(communicator, weights);
    parallel->begin(report_of(1));
    weights[0].sum().backward();
    if (communicator.rank() == 1)
      parallel->give_up(kOutOfMemory);
    else
      weights[1].sum().backward();
    const auto step = reduce_and_update(*parallel, 1);
    ASSERT_TRUE(step);
    EXPECT_FALSE(step->stands);
    EXPECT_EQ(step->totals.first_with(kOutOfMemory), 1);
    EXPECT_EQ(step->totals.weight, 2);

    parallel->begin(report_of(1));
    (weights[0].sum() + weights[1].sum()).backward();
    EXPECT_TRUE(reduce_and_update(*parallel, 1)->stands) << "the next step is clean";
    EXPECT_TRUE(has_stepped(weights[0], 1));
  });
}

TEST(DataParallel, ParametersWithoutElementsTakePart) {
  run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    std::vector<torch::Tensor> weights{torch::ones({0}, torch::requires_grad()),
                                       torch::ones({3}, torch::requires_grad()),
                                       torch::ones({2, 0}, torch::requires_grad())};
    const auto loss = [&] { return (weights[0].sum() + weights[1].sum() + weights[2].sum()) * 2; };
    for (const double bucket_bytes : {1.0, 100.0}) {
      const auto parallel = DataParallel::create(communicator, cpu_ops(), weights, [&] { loss().backward(); },
                                                 {.bucket_bytes = bucket_bytes})
                                .value();
      set_to_one(weights[1]);
      parallel->begin(report_of(1));
      loss().backward();
      const auto step = reduce_and_update(*parallel, 1);
      ASSERT_TRUE(step) << step.error().message;
      EXPECT_TRUE(has_stepped(weights[1], 2));
      EXPECT_NEAR(step->norm, 2 * std::sqrt(3), 1e-6);
    }
  });
}

/// Expects this error of finish() on both of two ranks, after a step in which `misuse` happened between begin() and
/// finish() only on rank 1.
void expect_refused(const std::string& sentence, const std::function<void(const std::vector<torch::Tensor>&)>& misuse) {
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto parallel = make_parallel(communicator, weights);
    parallel->begin(report_of(1));
    if (communicator.rank() == 1)
      misuse(weights);
    else
      (weights[0].sum() + weights[1].sum()).backward();
    const auto step = reduce_and_update(*parallel, 1);
    ASSERT_FALSE(step) << "rank " << communicator.rank();
    EXPECT_EQ(step.error().kind, ErrorKind::usage);
    EXPECT_THAT(step.error().message, HasSubstr("on rank 1 "));
    EXPECT_THAT(step.error().message, HasSubstr(sentence));
  });
}

TEST(DataParallel, TwoBackwardsInOneStepAreRefusedOnAllRanks) {
  expect_refused("backward() ran twice", [](const auto& weights) {
    (weights[0].sum() + weights[1].sum()).backward();
    (weights[0].sum() + weights[1].sum()).backward();
  });
}

TEST(DataParallel, ParameterThatBecomesReadyTwiceIsRefusedThoughItsBucketHasNotLeft) {
  expect_refused("became ready twice", [](const auto& weights) {
    const auto& last = weights[1];  // in the last bucket, which waits for finish()
    last.sum().backward();
    last.sum().backward();
  });
}

TEST(DataParallel, SharedWeightInOneGraphIsReadyOnce) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto parallel = make_parallel(communicator, weights);
    parallel->begin(report_of(1));
    (weights[0].sum() + (weights[0] * 2).sum() + weights[1].sum()).backward();
    const auto step = reduce_and_update(*parallel, 1);
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_TRUE(has_stepped(weights[0], 3));
  });
}

TEST(DataParallel, GradientsThatWereResetInTheStepAreRefusedOnAllRanks) {
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

TEST(DataParallel, GradientsThatWereResetBetweenStepsAreInPlaceAgain) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto parallel = make_parallel(communicator, weights);
    for (const auto& weight : weights) weight.mutable_grad() = torch::Tensor();
    parallel->begin(report_of(1));
    (weights[0].sum() + weights[1].sum()).backward();
    const auto step = reduce_and_update(*parallel, 1);
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_TRUE(has_stepped(weights[0], 1));
  });
}

TEST(DataParallel, TrialStepWithTwoBackwardsIsRefused) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto parallel = DataParallel::create(communicator, cpu_ops(), weights, [&] {
      weights[0].sum().backward();
      weights[0].sum().backward();
    });
    ASSERT_FALSE(parallel);
    EXPECT_THAT(parallel.error().message,
                HasSubstr("in the trial step the gradient of a parameter became ready twice"));
  });
}

TEST(DataParallel, GradientThatIsNotFiniteStopsTheStepEverywhere) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto parallel = make_parallel(communicator, weights);
    parallel->begin(report_of(1));
    const double factor = communicator.rank() == 1 ? INFINITY : 1.0;
    (weights[0] * factor).sum().backward();
    const auto step = reduce_and_update(*parallel, 1);
    ASSERT_TRUE(step);
    EXPECT_FALSE(step->finite);
    EXPECT_FALSE(step->stands);
  });
}

/// How the gradient is cut into buckets, and what of the state a rank has, in the test below.
struct AverageCase {
  double bucket_bytes;
  std::vector<double> state_shares;
};

TEST(DataParallel, AverageFollowsTheParametersWhereverItIsKept) {
  for (const auto& [bucket_bytes, state_shares] :
       {AverageCase{1, {1, 1, 1}}, AverageCase{1, {0, 1, 0}}, AverageCase{1e6, {1, 0, 3}}})
    run_ranks(3, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const std::vector weights{torch::ones({40}, torch::requires_grad()), torch::ones({3}, torch::requires_grad())};
      const auto loss = [&] { return weights[0].sum() + weights[1].sum(); };
      const auto parallel =
          DataParallel::create(communicator, cpu_ops(), weights, [&] { loss().backward(); },
                               {.bucket_bytes = bucket_bytes, .average = 0.75, .state_shares = state_shares})
              .value();
      const auto step = [&](double factor) {
        parallel->begin(report_of(1));
        (loss() * factor).backward();
        return reduce_and_update(*parallel, 1).value().stands;
      };
      ASSERT_TRUE(parallel->swap_average());
      EXPECT_TRUE(weights[0].eq(1).all().item<bool>()) << "there is none before the first step";
      EXPECT_TRUE(step(3));          // 1 to -2
      EXPECT_FALSE(step(INFINITY));  // left out
      EXPECT_TRUE(step(4));          // -2 to -6
      for (const double value : {-3.0, -6.0}) {
        ASSERT_TRUE(parallel->swap_average());
        for (const auto& weight : weights) EXPECT_TRUE(weight.eq(value).all().item<bool>()) << weight;
        EXPECT_TRUE(parallel->check_parameters(2));
      }
      EXPECT_TRUE(step(4));  // -6 to -10
      ASSERT_TRUE(parallel->swap_average());
      EXPECT_TRUE(weights[1].eq(0.75 * -3 + 0.25 * -10).all().item<bool>()) << weights[1];
    });
}

TEST(DataParallel, RanksOnOneDeviceOwnWhatOneRankThereWould) {
  run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const std::vector<torch::Tensor> weights{torch::ones({4096}, torch::requires_grad())};
    const int rank = communicator.rank(), sharing = rank == 1 ? 1 : 2;
    const auto parallel = DataParallel::create(communicator, cpu_ops(), weights, [&] { weights[0].sum().backward(); },
                                               {.ranks_on_device = sharing});
    EXPECT_EQ(parallel.value()->flat().layout().owned(rank), size_t(2048 / sharing));
  });
}

TEST(DataParallel, AllRanksStartFromRankZerosValues) {
  run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_weights(communicator.rank() + 1);
    const auto parallel = make_parallel(communicator, weights);
    EXPECT_TRUE(weights[0].eq(1).all().item<bool>());
    EXPECT_TRUE(parallel->check_parameters(0));
  });
}

TEST(DataParallel, ParametersThatDriftApartAreFound) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto parallel = make_parallel(communicator, two_weights());
    torch::NoGradGuard no_grad;
    if (communicator.rank() == 1) parallel->flat().parameters()[1].view(-1)[-1] += 1e-6;
    const auto checked = parallel->check_parameters(40);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().message, HasSubstr("after step 40 rank 1 and rank 0 have other values of parameter 2"));
    EXPECT_THAT(checked.error().message, HasSubstr("rank 1 computes with cpu, "));
  });
}

TEST(DataParallel, ModelsOfUnlikeShapesAreRefused) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const std::vector weights{torch::zeros({communicator.rank() == 0 ? 3 : 4}, torch::requires_grad())};
    const auto parallel = DataParallel::create(communicator, cpu_ops(), weights, [&] { weights[0].sum().backward(); });
    ASSERT_FALSE(parallel);
    EXPECT_THAT(parallel.error().message, HasSubstr("parameter 1 is Float of shape [4] on rank 1, and "));
  });
}

TEST(DataParallel, OrderOfRankZeroHoldsForAll) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_weights();
    const auto backward = [&] {  // rank 1 finishes its gradients in the other order
      weights[communicator.rank()].sum().backward();
      weights[1 - communicator.rank()].sum().backward();
    };
    const auto parallel = DataParallel::create(communicator, cpu_ops(), weights, backward, {.bucket_bytes = 1}).value();
    EXPECT_EQ(parallel->flat().parameters()[0].numel(), 3);
    parallel->begin(report_of(1));
    backward();
    ASSERT_TRUE(reduce_and_update(*parallel, 1));
    EXPECT_TRUE(has_stepped(weights[1], 1));
  });
}

TEST(DataParallel, MixedTypesAreRefusedByName) {
  run_ranks(1, comm::ConnectOptions::Transport::automatic, [](comm::Communicator& communicator) {
    const std::vector weights{torch::zeros({2}, torch::requires_grad()),
                              torch::zeros({2}, torch::dtype(torch::kDouble).requires_grad(true))};
    const auto parallel = DataParallel::create(communicator, cpu_ops(), weights, [] {});
    ASSERT_FALSE(parallel);
    EXPECT_EQ(parallel.error().message, "parameters mix Float and Double; they must have one type");
  });
}

}  // namespace
}  // namespace remuda::train
