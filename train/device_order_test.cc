// What a device was given before parameters change computes with those from before, also if it lags behind.
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/parallel.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using States = std::vector<double>;

constexpr int kCount = 64;  ///< elements of the only parameter

bool is_everywhere(const torch::Tensor& weight, double value) {
  return (weight.detach().to(torch::kCPU) - value).abs().lt(1e-6).all().item<bool>();
}

bool is_idle() {
  const c10::impl::VirtualGuardImpl guard(torch::kXPU);
  return guard.queryStream(guard.getStream(torch::Device(torch::kXPU, 0)));
}

/// One of two ranks; the second one computes on a stand-in that does nothing before somebody waits for it.
struct LateRank {
  LateRank(comm::Communicator& communicator, ParallelOptions options)
      : ops(DeviceOps::open(communicator.rank() == 1 ? torch::Device(torch::kXPU, 0) : torch::kCPU).value()),
        weight(torch::ones({kCount}, torch::device(ops.device()).requires_grad(true))),
        parallel(
            DataParallel::create(communicator, ops, {weight}, [this] { weight.sum().backward(); }, options).value()) {}

  ReducedStep reduce() const {
    parallel->begin({.weight = 1});
    weight.sum().backward();
    return parallel->reduce().value();
  }
  Result<void> update(const ReducedStep& step, double rate) const { return parallel->update(step, {{rate, 0}}); }
  Result<void> make_step(double rate) const { return update(reduce(), rate); }
  /// What the weight is to work that the device is given before `change`.
  torch::Tensor seen_before(const std::function<Result<void>()>& change) const {
    const torch::NoGradGuard no_grad;
    torch::Tensor seen = torch::zeros({kCount}, ops.device());
    seen.copy_(weight);
    const Result<void> changed = change();
    EXPECT_TRUE(changed) << changed.error().message;
    return seen;
  }

  /// Of the weight, what this rank owns.
  torch::Tensor owned() const {
    const comm::Chunk own = parallel->flat().layout().own(0, ops.is_synchronous() ? 0 : 1);
    return weight.detach().narrow(0, int64_t(own.begin), int64_t(own.size()));
  }

  const DeviceOps ops;
  const torch::Tensor weight;
  const std::unique_ptr<DataParallel> parallel;
};

class ParametersArrive : public ::testing::TestWithParam<std::tuple<UpdatesOn, States>> {
 protected:
  ParametersArrive() { testing::configure_standin(0, {.lazy_compute = true}); }
  ~ParametersArrive() override { testing::configure_standin(0, {}); }

  static ParallelOptions options() {
    return {.average = 0.5, .updates_on = std::get<0>(GetParam()), .state_shares = std::get<1>(GetParam())};
  }
  static void on_ranks(const ParallelOptions& options, const std::function<void(const LateRank&)>& body) {
    run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) { body(LateRank(communicator, options)); });
  }
};

INSTANTIATE_TEST_SUITE_P(OnTheDevice, ParametersArrive,
                         ::testing::Combine(::testing::Values(UpdatesOn::device, UpdatesOn::host),
                                            ::testing::Values(States{1, 0}, States{0, 1}, States{1, 1})));

TEST_P(ParametersArrive, AfterWhatUsesThoseBeforeAStep) {
  on_ranks(options(), [](const LateRank& rank) {
    ASSERT_TRUE(rank.make_step(1));
    const ReducedStep step = rank.reduce();
    EXPECT_TRUE(is_everywhere(rank.seen_before([&] { return rank.update(step, 1); }), 0));
    EXPECT_TRUE(is_everywhere(rank.weight, -1));
  });
}

TEST_P(ParametersArrive, AfterWhatUsesThoseBeforeTheirAverage) {
  on_ranks(options(), [](const LateRank& rank) {
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(rank.make_step(1));
    const auto swap = [&] { return rank.parallel->swap_average(); };
    EXPECT_TRUE(is_everywhere(rank.seen_before(swap), -1));
    EXPECT_TRUE(is_everywhere(rank.seen_before(swap), -0.5));
    EXPECT_TRUE(is_everywhere(rank.weight, -1));
  });
}

TEST_P(ParametersArrive, AfterWhatUsesThoseBeforeTheRunGoesOn) {
  on_ranks(options(), [](const LateRank& rank) {
    ASSERT_TRUE(rank.make_step(1));
    const auto go_on = [&] {
      for (Owned& own : rank.parallel->state().owned()) own.value.fill_(7);
      return rank.parallel->state().resume(4);
    };
    EXPECT_TRUE(is_everywhere(rank.seen_before(go_on), 0));
    EXPECT_TRUE(is_everywhere(rank.weight, 7));
  });
}

// 1/3 in bfloat16 is 0.333984375.
TEST_P(ParametersArrive, AfterWhatUsesThoseThatWereRounded) {
  ParallelOptions rounded = options();
  rounded.sent_as = torch::kBFloat16;
  on_ranks(rounded, [](const LateRank& rank) {
    ASSERT_TRUE(rank.make_step(2.0 / 3));
    EXPECT_TRUE(is_everywhere(rank.seen_before([&] { return rank.parallel->send_unrounded(); }), 0.333984375));
    EXPECT_TRUE(is_everywhere(rank.weight, 1.0 / 3));
  });
}

TEST_P(ParametersArrive, AfterWhatUsesThoseBeforeAStepOfThisRankAlone) {
  on_ranks(options(), [](const LateRank& rank) {
    if (rank.ops.is_synchronous()) return;
    rank.parallel->zero_gradient();
    rank.weight.sum().backward();
    EXPECT_TRUE(is_everywhere(rank.seen_before([&] { return rank.parallel->optimizer().step_alone(1, {{1, 0}}); }), 1));
    EXPECT_TRUE(is_everywhere(rank.owned(), 0)) << rank.owned();
  });
}

TEST_P(ParametersArrive, BeforeTheTimeOfAStepOfThisRankAloneIsTaken) {
  testing::configure_standin(0, {.lazy_compute = true, .lazy_copies = true});
  on_ranks(options(), [](const LateRank& rank) {
    if (rank.ops.is_synchronous()) return;
    rank.weight.sum().backward();
    ASSERT_TRUE(rank.parallel->optimizer().step_alone(1, {{1, 0}}));
    EXPECT_TRUE(is_idle());
    EXPECT_TRUE(is_everywhere(rank.owned(), 0)) << rank.owned();
  });
}

TEST_P(ParametersArrive, AfterWhatUsesThoseBeforeACompressedStep) {
  ParallelOptions adam = options();
  adam.average = 0;
  adam.rule.kind = UpdateRule::Kind::adamw;
  on_ranks(adam, [](const LateRank& rank) {
    ASSERT_TRUE(rank.make_step(0.5));
    ASSERT_TRUE(rank.parallel->compress());
    const ReducedStep step = rank.reduce();
    EXPECT_TRUE(is_everywhere(rank.seen_before([&] { return rank.update(step, 0.25); }), 0.5));
    EXPECT_TRUE(is_everywhere(rank.weight, 0.25));
    const auto go_on = [&] {
      for (Owned& own : rank.parallel->state().owned()) own.value.fill_(7);
      return rank.parallel->state().resume(2);
    };
    EXPECT_TRUE(is_everywhere(rank.seen_before(go_on), 0.25));
    EXPECT_TRUE(is_everywhere(rank.weight, 7));
  });
}

TEST_P(ParametersArrive, BeforeACompressedRunGoesOn) {
  testing::configure_standin(0, {.lazy_copies = true});
  ParallelOptions adam = options();
  adam.average = 0;
  adam.rule.kind = UpdateRule::Kind::adamw;
  on_ranks(adam, [](const LateRank& rank) {
    ASSERT_TRUE(rank.parallel->compress());
    for (Owned& own : rank.parallel->state().owned()) own.value.fill_(7);
    ASSERT_TRUE(rank.parallel->state().resume(2));
    EXPECT_TRUE(is_everywhere(rank.weight, 7)) << rank.weight;
  });
}

}  // namespace
}  // namespace remuda::train
