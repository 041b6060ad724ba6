#include "train/power_sgd.h"

#include <cmath>
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

constexpr size_t kRank =
    4;  // one more than gradients of low rank have here: the last one is found with the least precision
/// A matrix, a vector, and a matrix of three dimensions.
const std::vector<std::vector<int64_t>> kPowerSizes{{60, 50}, {700}, {30, 10, 4}};

class PowerSgds : public ::testing::TestWithParam<On> {
 protected:
  PowerSgds() { configure({.random_delay_s = 0.002}); }
  ~PowerSgds() override { configure({}); }

 private:
  static void configure(const testing::StandinSettings& options) {
    for (int i = 0; i < 3; ++i) testing::configure_standin(i, options);
  }
};

/// Of every parameter, for a rank and step: matrices of rank 1, or whatever comes.
std::vector<torch::Tensor> some_gradients(int rank, int step, bool is_low) {
  std::vector<torch::Tensor> all;
  for (const auto& sizes : kPowerSizes) {
    const auto wave = [&](int64_t count, double speed) {
      return torch::sin(torch::arange(count, torch::kFloat) * (speed + 0.11 * rank) + 1.7 * step) * (1 + rank);
    };
    const torch::Tensor whole = torch::zeros(sizes);
    if (is_low && sizes.size() > 1)
      all.push_back(torch::outer(wave(sizes[0], 0.3), wave(whole.numel() / sizes[0], 0.7)).view(sizes));
    else
      all.push_back(
          torch::sin(torch::arange(whole.numel(), torch::kFloat).square() * 0.0137 + wave(whole.numel(), 0.37))
              .view(sizes));
  }
  return all;
}

struct PowerRun {
  DeviceOps ops;
  std::vector<torch::Tensor> weights;
  std::unique_ptr<DataParallel> parallel;

  PowerRun(Communicator& communicator, On on, ParallelOptions options)
      : ops(testing::ops_for(on, communicator.rank())) {
    for (const auto& sizes : kPowerSizes)
      weights.push_back(torch::full(sizes, 1.0 + double(weights.size()), ops.device()).requires_grad_(true));
    options.bucket_bytes = 8 << 10;
    options.group_of = {0, 1, 0};
    parallel = DataParallel::create(
                   communicator, ops, weights,
                   [&] { (weights[0].sum() + weights[1].sum() + weights[2].sum()).backward(); }, std::move(options))
                   .value();
  }

  ReducedStep step(const std::vector<torch::Tensor>& gradients, double weight, double decay = 0.1) {
    parallel->begin({.weight = weight});
    torch::Tensor loss = torch::zeros({}, ops.device());
    for (size_t i = 0; i < weights.size(); ++i) loss = loss + (weights[i] * gradients[i].to(ops.device())).sum();
    loss.backward();
    auto reduced = parallel->reduce();
    if (!reduced) throw std::runtime_error(reduced.error().message);
    if (reduced->stands)
      if (const auto done = parallel->update(*reduced, {{0.01, decay}, {0.01, 0}}); !done)
        throw std::runtime_error(done.error().message);
    return *reduced;
  }

  torch::Tensor values() const {
    std::vector<torch::Tensor> all;
    for (const auto& one : weights) all.push_back(one.detach().to(torch::kCPU).to(torch::kDouble).flatten());
    return torch::cat(all);
  }
  /// Where an owned part lies among values().
  int64_t place_of(const Owned& one) const {
    int64_t at = int64_t(one.first);
    for (const auto& weight : weights) {
      if (parallel->flat().parameters()[one.parameter].is_same(weight)) break;
      at += weight.numel();
    }
    return at;
  }
};

double largest_of(const torch::Tensor& values) { return values.abs().max().item<double>(); }

/// With an epsilon that float32's rounding of small gradients is nothing beside.
std::vector<ParallelOptions> all_rules() {
  const UpdateRule adam{.kind = UpdateRule::Kind::adamw, .epsilon = 0.02};
  std::vector<ParallelOptions> all(6);
  all[1].rule.momentum = 0.9;
  all[2].rule = adam;
  all[3].rule = adam;
  all[3].clip_norm = 0.5;
  all[4].rule = adam;
  all[4].average = 0.9;
  all[5].rule.momentum = 0.9;
  all[5].clip_norm = 0.5;
  all[5].average = 0.9;
  all[5].updates_on = UpdatesOn::host;
  return all;
}

/// Three ranks on two hosts, of unlike shares: the sum of their gradients is of rank 3.
TEST_P(PowerSgds, TakeTheStepsOfTheOptimizerWhereGradientsAreOfLowRank) {
  std::vector<ParallelOptions> rules = all_rules();
  if (GetParam() == On::both) rules.erase(rules.begin(), rules.begin() + 4);  // the arithmetic is the same
  for (const ParallelOptions& options : rules)
    on_hosts(3, 2, [&](Communicator& communicator) {
      SCOPED_TRACE(options.clip_norm + options.average);
      PowerRun whole(communicator, GetParam(), options), low(communicator, GetParam(), options);
      const auto start = whole.values();
      for (int step = 1; step <= 8; ++step) {
        if (step == 3) {
          ASSERT_TRUE(low.parallel->compress(kRank));
        }
        const auto gradients = some_gradients(communicator.rank(), step, true);
        const double weight = communicator.rank() + step % 3;
        whole.step(gradients, weight);
        low.step(gradients, weight);
        const double moved = largest_of(whole.values() - start);
        ASSERT_LT(largest_of(low.values() - whole.values()), 1e-4 * moved + 2e-6) << step << ": values of 3 in float32";
      }
      EXPECT_TRUE(low.parallel->check_parameters(8));
      EXPECT_EQ(low.parallel->state().steps(), 8);
      const auto last = low.values();
      ASSERT_TRUE(whole.parallel->swap_average() && low.parallel->swap_average());
      EXPECT_EQ(largest_of(low.values() - last) > 1e-4, options.average > 0);
      EXPECT_LT(largest_of(low.values() - whole.values()), 1e-4 * largest_of(whole.values() - start) + 2e-6);
      ASSERT_TRUE(low.parallel->swap_average());
      EXPECT_TRUE(low.values().equal(last));
    });
}

/// Collective: the sum over ranks of what each owns of a state.
torch::Tensor gathered(Communicator& communicator, PowerRun& run, size_t state) {
  const auto memory = communicator.allocate(size_t(run.values().numel()) * sizeof(float)).value();
  const std::span<float> all{reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)};
  const auto there = torch::from_blob(all.data(), {int64_t(all.size())}, torch::kFloat);
  there.zero_();
  for (const Owned& one : run.parallel->state().owned())
    there.narrow(0, run.place_of(one), one.value.numel()).copy_(one.states.at(state));
  EXPECT_TRUE(communicator.all_reduce(all, 1));
  return there.to(torch::kDouble);
}

torch::Tensor flat(const std::vector<torch::Tensor>& gradients) {
  std::vector<torch::Tensor> all;
  for (const auto& one : gradients) all.push_back(one.flatten());
  return torch::cat(all).to(torch::kDouble);
}

/// Shares change from step to step, and each step divides by another weight.
TEST_P(PowerSgds, WhatAllWereGivenAndWhatIsOwedAreAllGradients) {
  for (const auto& [ranks, on_first_host] : {std::pair(2, 1), std::pair(4, 2)})
    on_hosts(ranks, on_first_host, [&, ranks = ranks](Communicator& communicator) {
      PowerRun run(communicator, GetParam(), {});
      run.step(some_gradients(communicator.rank(), 0, false), 1);
      ASSERT_TRUE(run.parallel->compress(kRank));
      const auto before = run.values();
      auto given = torch::zeros_like(before);
      for (int step = 1; step <= 8; ++step) {
        const auto weight = [&](int rank) { return double(1 + (rank + step) % 3); };
        run.step(some_gradients(communicator.rank(), step, false), weight(communicator.rank()), 0);
        double sum = 0;
        for (int rank = 0; rank < ranks; ++rank) sum += weight(rank);
        for (int rank = 0; rank < ranks; ++rank) given += flat(some_gradients(rank, step, false)) / sum;
      }
      ASSERT_TRUE(run.parallel->state().settle());
      const auto owed = gathered(communicator, run, 0), moved = (before - run.values()) / 0.01;
      EXPECT_GT(largest_of(owed), 0.1);
      EXPECT_LT(largest_of(moved - (given - owed)), 5e-4);  // values of 3 in float32, eight times moved by 0.01
      EXPECT_TRUE(run.parallel->check_parameters(8));
    });
}

TEST_P(PowerSgds, OnASingleHostGoOnWithoutLoss) {
  on_hosts(2, 2, [&](Communicator& communicator) {
    PowerRun whole(communicator, GetParam(), {}), low(communicator, GetParam(), {});
    ASSERT_TRUE(low.parallel->compress(kRank));
    for (int step = 0; step < 3; ++step)
      for (PowerRun* run : {&whole, &low}) run->step(some_gradients(communicator.rank(), step, false), 1);
    EXPECT_LT(largest_of(low.values() - whole.values()), 1e-6);
  });
}

TEST_P(PowerSgds, AStepThatDoesNotStandIsOwedByNobody) {
  on_hosts(3, 2, [&](Communicator& communicator) {
    PowerRun run(communicator, GetParam(), {}), undisturbed(communicator, GetParam(), {});
    for (PowerRun* one : {&run, &undisturbed}) {
      one->step(some_gradients(communicator.rank(), 0, false), 1);
      ASSERT_TRUE(one->parallel->compress(kRank));
      one->step(some_gradients(communicator.rank(), 1, false), 1);
    }
    for (const float bad : {INFINITY, NAN, 1e26f}) {
      auto gradients = some_gradients(communicator.rank(), 2, false);
      if (communicator.rank() == 1) gradients[0][3][4] = bad;
      EXPECT_FALSE(run.step(gradients, 1).stands) << bad;
    }
    for (PowerRun* one : {&run, &undisturbed})
      EXPECT_TRUE(one->step(some_gradients(communicator.rank(), 3, false), 1).stands);
    EXPECT_TRUE(run.values().equal(undisturbed.values()));
    EXPECT_TRUE(run.parallel->check_parameters(3));
  });
}

TEST_P(PowerSgds, ARankWithoutSamplesTakesPart) {
  for (int i = 0; i < 3; ++i) testing::configure_standin(i, {.lazy_copies = true, .random_delay_s = 0.002});
  on_hosts(2, 1, [&](Communicator& communicator) {
    PowerRun run(communicator, GetParam(), {});
    run.step(some_gradients(0, 0, false), 1);
    ASSERT_TRUE(run.parallel->compress(kRank));
    for (int step = 1; step < 6; ++step) {
      if (communicator.rank() == 0) {
        run.step(some_gradients(0, step, false), 1);
        continue;
      }
      run.parallel->begin({});
      const auto reduced = run.parallel->reduce();
      ASSERT_TRUE(reduced && run.parallel->update(*reduced, {{0.01, 0.1}, {0.01, 0}}));
    }
    EXPECT_TRUE(run.parallel->check_parameters(6));
  });
}

/// What is kept after some steps, by its place in the model: values, momentum, what is owed, and the average.
struct KeptOfPower {
  std::mutex mutex;
  std::vector<torch::Tensor> all;

  static std::vector<torch::Tensor> parts(Owned& one) {
    return {one.value, one.states.at(0), one.states.at(1), one.average};
  }
};

TEST_P(PowerSgds, AnyNumberOfRanksGoesOnWithWhatIsOwed) {
  KeptOfPower kept;
  for (int i = 0; i < 4; ++i) kept.all.push_back(torch::zeros({3000 + 700 + 1200}));
  ParallelOptions options;
  options.rule.momentum = 0.9;
  options.average = 0.9;
  on_hosts(3, 2, [&](Communicator& communicator) {
    PowerRun run(communicator, GetParam(), options);
    for (int step = 0; step < 4; ++step) {
      if (step == 2) {
        ASSERT_TRUE(run.parallel->compress(kRank));
      }
      run.step(some_gradients(communicator.rank(), step, false), 1);
    }
    ASSERT_TRUE(run.parallel->state().settle());
    const std::lock_guard lock(kept.mutex);
    for (Owned& one : run.parallel->state().owned()) {
      const auto parts = KeptOfPower::parts(one);
      for (size_t i = 0; i < parts.size(); ++i)
        kept.all[i].narrow(0, run.place_of(one), parts[i].numel()).copy_(parts[i]);
    }
  });
  EXPECT_GT(largest_of(kept.all[2]), 0.01);
  for (const int ranks : {1, 2, 4})
    on_hosts(ranks, 1, [&](Communicator& communicator) {
      PowerRun run(communicator, GetParam(), options);
      ASSERT_TRUE(run.parallel->compress(kRank));
      for (Owned& one : run.parallel->state().owned()) {
        const auto parts = KeptOfPower::parts(one);
        for (size_t i = 0; i < parts.size(); ++i)
          torch::Tensor(parts[i]).copy_(kept.all[i].narrow(0, run.place_of(one), parts[i].numel()));
      }
      ASSERT_TRUE(run.parallel->state().resume(4));
      EXPECT_EQ(largest_of(run.values() - kept.all[0].to(torch::kDouble)), 0);
      ASSERT_TRUE(run.parallel->state().settle());
      for (Owned& one : run.parallel->state().owned()) {
        const auto parts = KeptOfPower::parts(one);
        for (size_t i = 0; i < parts.size(); ++i)
          EXPECT_TRUE(parts[i].equal(kept.all[i].narrow(0, run.place_of(one), parts[i].numel()))) << i;
      }
      run.step(some_gradients(communicator.rank(), 4, false), 1);
      EXPECT_TRUE(run.parallel->check_parameters(5));
      EXPECT_EQ(run.parallel->state().steps(), 5);
    });
}

/// In float32 a rank of two sends half of its gradients and half of the parameters: 4 bytes of each.
TEST(PowerSgd, SendsTheSidesOfMatricesAndNoParameters) {
  on_hosts(2, 1, [&](Communicator& communicator) {
    const auto weight = torch::ones({1000, 1000}, torch::requires_grad());
    const auto parallel =
        DataParallel::create(communicator, testing::cpu_ops(), {weight}, [&] { weight.sum().backward(); }).value();
    ASSERT_TRUE(parallel->compress(4));
    const auto& compressed = dynamic_cast<const CompressedOptimizer&>(parallel->state());
    const uint64_t before = communicator.sent_bytes() + compressed.sent_bytes();
    parallel->begin({.weight = 1});
    weight.sum().backward();
    const auto reduced = parallel->reduce();
    ASSERT_TRUE(reduced && parallel->update(*reduced, {{0.01, 0}}));
    const auto sent = double(communicator.sent_bytes() + compressed.sent_bytes() - before);
    EXPECT_NEAR(sent, 4 * 4 * 2000, 2000) << "and the verdict, and settings";
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, PowerSgds, ::testing::Values(On::cpus, On::both),
                         [](const auto& info) { return info.param == On::cpus ? "OnCpus" : "OnBoth"; });

}  // namespace
}  // namespace remuda::train
