// Parameters that are sent in fewer bits than they are kept in.
#include "train/sharded_optimizer.h"

#include <deque>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/capped_memory.h"
#include "train/testing/parallel.h"

namespace remuda::train {
namespace {

std::vector<torch::Tensor> two_halves() {
  return {torch::ones({3}, torch::requires_grad()), torch::ones({5}, torch::requires_grad())};
}

bool are_all(const torch::Tensor& weight, double value) { return (weight - value).abs().max().item<double>() < 1e-6; }

// A bfloat16 just below 1 is 0.996.
TEST(ShardedOptimizer, KeepsStepsThatAreTooSmallForTheTypeThatIsSent) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_halves();
    const auto backward = [&] { (weights[0].sum() + weights[1].sum()).backward(); };
    const auto parallel = DataParallel::create(communicator, testing::cpu_ops(), weights, backward,
                                               {.average = 0.5, .sent_as = torch::kBFloat16})
                              .value();
    const auto step = [&](double rate) {
      parallel->begin({.weight = 1});
      backward();
      ASSERT_TRUE(testing::reduce_and_update(*parallel, rate));
    };
    step(5e-4);
    step(5e-4);
    EXPECT_TRUE(weights[1].eq(1).all().item<bool>());
    ASSERT_TRUE(parallel->send_unrounded());
    EXPECT_TRUE(are_all(weights[0], 0.999) && are_all(weights[1], 0.999));
    ASSERT_TRUE(parallel->check_parameters(2));
    ASSERT_TRUE(parallel->swap_average());
    EXPECT_TRUE(weights[1].eq(1).all().item<bool>()) << "rounded, as all that is sent";
    ASSERT_TRUE(parallel->send_unrounded());
    EXPECT_TRUE(are_all(weights[0], 0.99925) && are_all(weights[1], 0.99925));
    ASSERT_TRUE(parallel->swap_average());
    step(2e-3);
    EXPECT_TRUE(weights[1].eq(0.99609375).all().item<bool>()) << weights[1];
  });
}

TEST(ShardedOptimizer, GoesOnFromTheValuesThereAreAfterAReset) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = two_halves();
    const auto backward = [&] { (weights[0].sum() + weights[1].sum()).backward(); };
    const auto parallel =
        DataParallel::create(communicator, testing::cpu_ops(), weights, backward, {.sent_as = torch::kBFloat16})
            .value();
    const auto values = parallel->flat().values().device();
    parallel->zero_gradient();
    backward();
    ASSERT_TRUE(parallel->optimizer().step_alone(0.25, {{1, 0}}));
    for (size_t i = 0; i < weights.size(); ++i) {
      const comm::Chunk own = parallel->flat().layout().own_of(i, communicator.rank());
      EXPECT_TRUE(values.narrow(0, int64_t(own.begin), int64_t(own.size())).eq(0.75).all().item<bool>());
    }
    parallel->optimizer().reset();
    {
      const torch::NoGradGuard no_grad;
      torch::Tensor(values).fill_(1);
    }
    parallel->begin({.weight = 1});
    backward();
    ASSERT_TRUE(testing::reduce_and_update(*parallel, 0.5));
    EXPECT_TRUE(weights[0].eq(0.5).all().item<bool>()) << weights[0];
  });
}

/// Two steps of three ranks. One of them has no more memory, where there is not `enough`, from the moment that the
/// gradients are there: 256 bytes, for the numbers that libtorch wraps as tensors. Rank 0's parameters.
std::vector<float> two_steps(const UpdateRule& rule, bool enough) {
  std::vector<float> values;
  const testing::CappedMemory capped;
  std::deque<testing::Budget> budgets(3);
  run_ranks(3, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    testing::Budget& budget = budgets[size_t(communicator.rank())];
    const testing::OnDevice device(budget);
    const auto weight = torch::ones({200'000}, torch::requires_grad());  // an owner's part is updated in three goes
    const auto backward = [&] { (weight * weight).sum().backward(); };
    const auto parallel = DataParallel::create(communicator, testing::cpu_ops(), {weight}, backward,
                                               {.rule = rule, .average = 0.5, .sent_as = torch::kBFloat16})
                              .value();
    for (int step = 0; step < 2; ++step) {
      parallel->begin({.weight = 1});
      backward();
      const auto reduced = parallel->reduce();
      ASSERT_TRUE(reduced && reduced->stands);
      if (communicator.rank() == 1 && !enough) budget.cap = budget.used + 256;
      ASSERT_TRUE(parallel->update(*reduced, {{0.1, 0.1}}));
      ASSERT_TRUE(parallel->swap_average());
      ASSERT_TRUE(parallel->swap_average());
      budget.cap = SIZE_MAX;
    }
    EXPECT_TRUE(parallel->check_parameters(2));
    if (communicator.rank() == 0) values.assign(weight.data_ptr<float>(), weight.data_ptr<float>() + weight.numel());
  });
  return values;
}

TEST(ShardedOptimizer, NeedsNoMemoryInAnUpdate) {
  for (const UpdateRule& rule : {UpdateRule{.momentum = 0.9}, UpdateRule{.kind = UpdateRule::Kind::adamw}})
    EXPECT_EQ(two_steps(rule, false), two_steps(rule, true));
}

}  // namespace
}  // namespace remuda::train
