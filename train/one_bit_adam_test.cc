#include "train/one_bit_adam.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <mutex>

#include "train/testing/on_hosts.h"
#include "train/testing/parallel.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using comm::Communicator;
using testing::On;
using testing::on_hosts;
using Transport = comm::ConnectOptions::Transport;

constexpr double kCompressedEpsilon = 1e-8;
/// Not a whole number of chunks of a sum, and of two parameters, whose groups decay differently.
constexpr int64_t kFirstSize = 3000, kSecondSize = 7001;

/// A gradient that differs from rank to rank and step to step.
torch::Tensor gradient_of(int rank, int step, int64_t count) {
  return torch::sin(torch::arange(count, torch::kFloat) * (0.37 + 0.11 * rank) + 1.7 * step) * (1 + rank);
}

class OneBitAdams : public ::testing::TestWithParam<On> {
 protected:
  OneBitAdams() { configure({.random_delay_s = 0.002}); }
  ~OneBitAdams() override { configure({}); }

 private:
  static void configure(const testing::StandinSettings& options) {
    for (int i = 0; i < 3; ++i) testing::configure_standin(i, options);
  }
};

/// Two parameters, trained on gradients that are given.
struct CompressedRun {
  DeviceOps ops;
  bool is_first;
  std::vector<torch::Tensor> weights;
  std::unique_ptr<DataParallel> parallel;

  CompressedRun(Communicator& communicator, On on, UpdateRule rule, std::vector<double> state_shares = {},
                std::optional<torch::ScalarType> sent_as = {})
      : ops(testing::ops_for(on, communicator.rank())), is_first(communicator.rank() == 0) {
    const auto options = torch::device(ops.device()).requires_grad(true);
    weights = {torch::ones({kFirstSize}, options), torch::full({kSecondSize}, 2.0, options)};
    parallel =
        DataParallel::create(communicator, ops, weights, [&] { (weights[0].sum() + weights[1].sum()).backward(); },
                             {.bucket_bytes = 8 << 10,
                              .rule = rule,
                              .group_of = {0, 1},
                              .state_shares = std::move(state_shares),
                              .sent_as = sent_as})
            .value();
  }

  /// A step of rate 0.01 and a decay of 0.1 of the first. Once it is compressed, rank 0's settings are those of all.
  ReducedStep step(const torch::Tensor& gradient, double weight) {
    parallel->begin({.weight = weight});
    const auto there = gradient.to(ops.device());
    ((weights[0] * there.narrow(0, 0, kFirstSize)).sum() +
     (weights[1] * there.narrow(0, kFirstSize, kSecondSize)).sum())
        .backward();
    auto reduced = parallel->reduce();
    if (!reduced) throw std::runtime_error(reduced.error().message);
    if (!reduced->stands) return *reduced;
    const double rate = is_first || !parallel->is_compressed() ? 0.01 : 0.5;
    if (const auto done = parallel->update(*reduced, {{rate, 0.1}, {rate, 0}}); !done)
      throw std::runtime_error(done.error().message);
    return *reduced;
  }

  torch::Tensor values() const {
    return torch::cat({weights[0].detach().to(torch::kCPU), weights[1].detach().to(torch::kCPU)}).to(torch::kDouble);
  }
  /// Of the owned parts; 0 elsewhere.
  torch::Tensor own(size_t state) const {
    torch::Tensor whole = torch::zeros({kFirstSize + kSecondSize}, torch::kDouble);
    for (const Owned& one : parallel->state().owned()) {
      const bool is_first = parallel->flat().parameters()[one.parameter].is_same(weights[0]);
      whole.narrow(0, int64_t(one.first) + (is_first ? 0 : kFirstSize), one.value.numel()).copy_(one.states.at(state));
    }
    return whole;
  }
};

const UpdateRule kAdam{.kind = UpdateRule::Kind::adamw, .beta1 = 0.9, .beta2 = 0.99, .epsilon = kCompressedEpsilon};

double largest(const torch::Tensor& values) { return values.abs().max().item<double>(); }

/// Gradients of one size everywhere, the same on all ranks: a bit says all of them.
TEST_P(OneBitAdams, TakeTheStepsOfAdamWWithAFrozenVariance) {
  constexpr int kWarm = 4, kSteps = 12;
  const auto signs = torch::where(torch::arange(kFirstSize + kSecondSize) % 3 == 0, 1.0f, -1.0f);
  on_hosts(3, 2, [&](Communicator& communicator) {
    CompressedRun trained(communicator, GetParam(), kAdam, {3, 0, 1});
    const double weights[] = {1, 5, 2};
    auto expected = trained.values();
    auto momentum = torch::zeros_like(expected), variance = torch::zeros_like(expected);
    double correction2 = 1;
    for (int step = 1; step <= kSteps; ++step) {
      if (step == kWarm + 1) {
        ASSERT_TRUE(trained.parallel->compress());
      }
      const double size = 1 + 0.1 * step;
      trained.step(signs * float(size * weights[communicator.rank()]), weights[communicator.rank()]);
      momentum = 0.9 * momentum + 0.1 * size * signs.to(torch::kDouble);
      if (step <= kWarm) {
        variance = 0.99 * variance + 0.01 * size * size;
        correction2 = 1 - std::pow(0.99, step);
      }
      expected.narrow(0, 0, kFirstSize).mul_(1 - 0.01 * 0.1);
      expected -=
          0.01 / (1 - std::pow(0.9, step)) * momentum / (torch::sqrt(variance / correction2) + kCompressedEpsilon);
      // float32 over twelve steps of 0.01
      ASSERT_LT(largest(trained.values() - expected), 2e-6) << step;
    }
    EXPECT_TRUE(trained.parallel->check_parameters(kSteps));
    EXPECT_EQ(trained.parallel->state().steps(), kSteps);
  });
}

/// Without momentum, what the values have moved by and what is owed are the sum of all gradients, divided by the root
/// of the frozen variance.
void expect_that_nothing_is_lost(On on, int ranks, int on_first_host) {
  constexpr int kSteps = 8;
  UpdateRule rule = kAdam;
  rule.beta1 = 0;
  on_hosts(ranks, on_first_host, [&](Communicator& communicator) {
    CompressedRun trained(communicator, on, rule);
    const int rank = communicator.rank();
    trained.step(gradient_of(rank, 0, kFirstSize + kSecondSize), 1);
    ASSERT_TRUE(trained.parallel->compress());
    ASSERT_TRUE(trained.parallel->state().settle());
    const auto memory = communicator.allocate((kFirstSize + kSecondSize) * sizeof(float)).value();
    const auto sum_of = [&](const torch::Tensor& own) {
      const auto values = own.to(torch::kFloat).contiguous();
      std::memcpy(memory.data(), values.data_ptr(), memory.size());
      const std::span<float> all{reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)};
      EXPECT_TRUE(communicator.all_reduce(all, 1));
      return torch::from_blob(all.data(), {int64_t(all.size())}, torch::kFloat).to(torch::kDouble);
    };
    const auto inverse = sum_of(trained.own(1));
    const auto before = trained.values();
    auto given = torch::zeros_like(before);
    for (int step = 1; step <= kSteps; ++step) {
      trained.step(gradient_of(rank, step, kFirstSize + kSecondSize), 1);
      for (int other = 0; other < ranks; ++other)
        given += gradient_of(other, step, kFirstSize + kSecondSize).to(torch::kDouble) / ranks * inverse;
    }
    ASSERT_TRUE(trained.parallel->state().settle());
    const auto owed = sum_of(trained.own(2));
    // Of the second parameter, which does not decay.
    const auto moved = (before - trained.values()).narrow(0, kFirstSize, kSecondSize) / 0.01;
    const auto expected = (given - owed).narrow(0, kFirstSize, kSecondSize);
    EXPECT_GT(largest(owed), 0.1) << "one bit loses something";
    // Values of 2 in float32 are moved by steps of 0.01: 2^-23 / 0.01 in each; and so are what is given and owed.
    EXPECT_LT(largest(moved - expected), 5e-4 + 1e-6 * (largest(given) + largest(owed))) << largest(given);
    EXPECT_TRUE(trained.parallel->check_parameters(kSteps));
  });
}

TEST_P(OneBitAdams, WhatAllWereGivenAndWhatIsOwedAreAllGradients) {
  expect_that_nothing_is_lost(GetParam(), 2, 1);
  expect_that_nothing_is_lost(GetParam(), 4, 2);
}

TEST_P(OneBitAdams, OfOneHostGoOnToo) { expect_that_nothing_is_lost(GetParam(), 2, 2); }

/// What is kept after some steps, by its place in the model.
struct KeptState {
  torch::Tensor values = torch::zeros({kFirstSize + kSecondSize});
  std::vector<torch::Tensor> states{3, torch::Tensor()};
  std::mutex mutex;
};

TEST_P(OneBitAdams, AnyNumberOfRanksGoesOnWithWhatIsOwed) {
  KeptState kept;
  for (auto& state : kept.states) state = torch::zeros({kFirstSize + kSecondSize});
  const auto each = [](CompressedRun& trained, const auto& use) {
    for (Owned& one : trained.parallel->state().owned()) {
      const bool is_first = trained.parallel->flat().parameters()[one.parameter].is_same(trained.weights[0]);
      use(one, int64_t(one.first) + (is_first ? 0 : kFirstSize));
    }
  };
  on_hosts(3, 2, [&](Communicator& communicator) {
    CompressedRun trained(communicator, GetParam(), kAdam);
    for (int step = 0; step < 4; ++step) {
      if (step == 2) {
        ASSERT_TRUE(trained.parallel->compress());
      }
      trained.step(gradient_of(communicator.rank(), step, kFirstSize + kSecondSize), 1);
    }
    ASSERT_TRUE(trained.parallel->state().settle());
    const std::lock_guard lock(kept.mutex);
    const torch::NoGradGuard no_grad;
    each(trained, [&](const Owned& one, int64_t at) {
      kept.values.narrow(0, at, one.value.numel()).copy_(one.value);
      for (size_t i = 0; i < 3; ++i) kept.states[i].narrow(0, at, one.value.numel()).copy_(one.states[i]);
    });
  });
  EXPECT_GT(largest(kept.states[2]), 0.01);
  for (const int ranks : {1, 2, 4})
    on_hosts(ranks, 1, [&](Communicator& communicator) {
      CompressedRun trained(communicator, GetParam(), kAdam,
                            ranks == 2 ? std::vector<double>{1, 3} : std::vector<double>());
      ASSERT_TRUE(trained.parallel->compress());
      {
        const torch::NoGradGuard no_grad;
        each(trained, [&](Owned& one, int64_t at) {
          one.value.copy_(kept.values.narrow(0, at, one.value.numel()));
          for (size_t i = 0; i < 3; ++i) one.states[i].copy_(kept.states[i].narrow(0, at, one.value.numel()));
        });
      }
      ASSERT_TRUE(trained.parallel->state().resume(4));
      EXPECT_EQ(largest(trained.values() - kept.values.to(torch::kDouble)), 0);
      ASSERT_TRUE(trained.parallel->state().settle());
      each(trained, [&](const Owned& one, int64_t at) {
        for (size_t i = 0; i < 3; ++i)
          EXPECT_TRUE(one.states[i].equal(kept.states[i].narrow(0, at, one.value.numel()))) << i;
      });
      trained.step(gradient_of(communicator.rank(), 4, kFirstSize + kSecondSize), 1);
      EXPECT_TRUE(trained.parallel->check_parameters(5));
      EXPECT_EQ(trained.parallel->state().steps(), 5);
    });
}

/// Its gradients, zeros, may reach the host before the values of the last step have left it.
TEST_P(OneBitAdams, ARankWithoutSamplesTakesPart) {
  for (int i = 0; i < 3; ++i) testing::configure_standin(i, {.lazy_copies = true, .random_delay_s = 0.002});
  on_hosts(2, 1, [&](Communicator& communicator) {
    CompressedRun trained(communicator, GetParam(), kAdam);
    trained.step(gradient_of(0, 0, kFirstSize + kSecondSize), 1);
    ASSERT_TRUE(trained.parallel->compress());
    for (int step = 1; step < 6; ++step) {
      if (communicator.rank() == 0) {
        trained.step(gradient_of(0, step, kFirstSize + kSecondSize), 1);
        continue;
      }
      trained.parallel->begin({});
      const auto reduced = trained.parallel->reduce();
      ASSERT_TRUE(reduced && trained.parallel->update(*reduced, {{0.01, 0.1}, {0.01, 0}}));
    }
    EXPECT_TRUE(trained.parallel->check_parameters(6));
  });
}

TEST_P(OneBitAdams, ValuesThatWereSentRoundedAreWholeFromThenOn) {
  for (int i = 0; i < 3; ++i) testing::configure_standin(i, {.lazy_copies = true});
  on_hosts(2, 1, [&](Communicator& communicator) {
    CompressedRun trained(communicator, GetParam(), kAdam, {}, torch::kBFloat16);
    trained.step(gradient_of(0, 0, kFirstSize + kSecondSize), 1);
    EXPECT_EQ(largest(trained.values() - trained.values().to(torch::kBFloat16).to(torch::kDouble)), 0);
    ASSERT_TRUE(trained.parallel->compress());
    EXPECT_GT(largest(trained.values() - trained.values().to(torch::kBFloat16).to(torch::kDouble)), 0);
    EXPECT_TRUE(trained.parallel->check_parameters(1));
  });
}

/// In float32 a rank of two sends half of its gradients and half of the parameters: 4 bytes of each.
TEST(OneBitAdam, SendsOneBitPerParameter) {
  constexpr int64_t kMany = 1 << 20;
  on_hosts(2, 1, [&](Communicator& communicator) {
    const auto weight = torch::ones({kMany}, torch::requires_grad());
    const auto parallel = DataParallel::create(communicator, testing::cpu_ops(), {weight},
                                               [&] { weight.sum().backward(); }, {.rule = kAdam})
                              .value();
    const auto step = [&] {
      parallel->begin({.weight = 1});
      (weight * gradient_of(communicator.rank(), 1, kMany)).sum().backward();
      const auto reduced = parallel->reduce();
      ASSERT_TRUE(reduced && parallel->update(*reduced, {{0.01, 0}}));
    };
    step();
    const uint64_t before = communicator.sent_bytes();
    step();
    const uint64_t whole = communicator.sent_bytes() - before;
    EXPECT_GT(whole, 4 * kMany);
    ASSERT_TRUE(parallel->compress());
    const auto& compressed = dynamic_cast<const CompressedOptimizer&>(parallel->state());
    const uint64_t small = communicator.sent_bytes() + compressed.sent_bytes();
    step();
    EXPECT_LT(double(communicator.sent_bytes() + compressed.sent_bytes() - small), double(whole) / 28);
  });
}

TEST_P(OneBitAdams, AStepThatIsNotFiniteIsOwedByNobody) {
  on_hosts(2, 1, [&](Communicator& communicator) {
    CompressedRun trained(communicator, GetParam(), kAdam);
    trained.step(gradient_of(0, 0, kFirstSize + kSecondSize), 1);
    ASSERT_TRUE(trained.parallel->compress());
    trained.step(gradient_of(0, 1, kFirstSize + kSecondSize), 1);
    const auto before = trained.values();
    for (const float bad : {INFINITY, NAN, 1e26f}) {
      const bool is_mine = communicator.rank() == 1;
      EXPECT_FALSE(trained.step(torch::full({kFirstSize + kSecondSize}, is_mine ? bad : 1), 1).stands) << bad;
    }
    EXPECT_TRUE(trained.values().equal(before));
    EXPECT_TRUE(trained.step(gradient_of(0, 2, kFirstSize + kSecondSize), 1).stands);
    EXPECT_TRUE(torch::isfinite(trained.values()).all().item<bool>());
    EXPECT_TRUE(trained.parallel->check_parameters(3));
  });
}

TEST(OneBitAdam, IsForFloat32) {
  comm::run_ranks(1, Transport::automatic, [](Communicator& communicator) {
    const auto weight = torch::ones({4}, torch::TensorOptions(torch::kDouble).requires_grad(true));
    const auto parallel = DataParallel::create(communicator, testing::cpu_ops(), {weight},
                                               [&] { weight.sum().backward(); }, {.rule = kAdam})
                              .value();
    const auto refused = parallel->compress();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "train.compression is for models of float32; leave it out");
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, OneBitAdams, ::testing::Values(On::cpus, On::both),
                         [](const auto& info) { return info.param == On::cpus ? "OnCpus" : "OnBoth"; });

}  // namespace
}  // namespace remuda::train
