// Parameters that have no gradient in a step, as nothing depends on them: they are passed over, as PyTorch's optimizers
// pass over those whose grad is None.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/data_files.h"
#include "train/testing/kept_runs.h"
#include "train/testing/on_hosts.h"
#include "train/testing/parallel.h"

namespace remuda::train {
namespace {

using testing::cpu_ops;
using testing::kKeptSteps;

constexpr int kUnusedSteps = 9;
constexpr double kRate = 0.05, kDecay = 0.1;
const std::vector<int64_t> kUnusedSizes{40, 7, 23};

/// Whether a rank's loss depends on a parameter: on each in some steps, in some on no rank, in others only on the last.
bool uses(int rank, int ranks, int step, size_t parameter) {
  if (parameter == 0) return true;
  if (parameter == 1) return step % 3 == 0 && rank == ranks - 1;
  return step % 4 != 1;
}

torch::Tensor gradient_for(int rank, int step, size_t parameter) {
  return torch::sin(torch::arange(kUnusedSizes[parameter], torch::kDouble) * (0.7 + double(parameter)) + rank +
                    2.1 * step);
}

std::vector<torch::Tensor> initial_weights() {
  std::vector<torch::Tensor> all;
  for (const int64_t size : kUnusedSizes) all.push_back(torch::cos(torch::arange(size, torch::kDouble)));
  return all;
}

/// libtorch's own optimizer, on one device in float64.
std::vector<torch::Tensor> by_libtorch(const UpdateRule& rule, int ranks) {
  std::vector<torch::Tensor> weights = initial_weights();
  for (torch::Tensor& weight : weights) weight.requires_grad_();
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (rule.kind == UpdateRule::Kind::adamw)
    optimizer = std::make_unique<torch::optim::AdamW>(weights, torch::optim::AdamWOptions(kRate).weight_decay(kDecay));
  else
    optimizer = std::make_unique<torch::optim::SGD>(
        weights, torch::optim::SGDOptions(kRate).momentum(rule.momentum).weight_decay(kDecay));
  for (int step = 0; step < kUnusedSteps; ++step) {
    for (size_t i = 0; i < weights.size(); ++i) {
      torch::Tensor sum;
      for (int rank = 0; rank < ranks; ++rank) {
        if (!uses(rank, ranks, step, i)) continue;
        const torch::Tensor one = gradient_for(rank, step, i) / ranks;
        sum = sum.defined() ? sum + one : one;
      }
      weights[i].mutable_grad() = sum;
    }
    optimizer->step();
  }
  for (torch::Tensor& weight : weights) weight = weight.detach();
  return weights;
}

struct UnusedRun {
  std::vector<torch::Tensor> weights;
  std::unique_ptr<DataParallel> parallel;

  UnusedRun(comm::Communicator& communicator, const UpdateRule& rule, torch::ScalarType type, double average = 0) {
    for (const torch::Tensor& one : initial_weights()) weights.push_back(one.to(type).requires_grad_());
    parallel = DataParallel::create(communicator, cpu_ops(), weights,
                                    [&] { (weights[0].sum() + weights[1].sum() + weights[2].sum()).backward(); },
                                    {.bucket_bytes = 100, .rule = rule, .average = average})
                   .value();
  }

  /// In two passes, of which the first adds the gradient of the second parameter only.
  void step(comm::Communicator& communicator, int number) {
    const int rank = communicator.rank();
    const auto loss = [&](size_t i) {
      return (weights[i] * gradient_for(rank, number, i).to(weights[i].scalar_type())).sum();
    };
    const auto used = [&](size_t i) { return uses(rank, communicator.size(), number, i); };
    if (used(1)) {
      parallel->accumulate();
      loss(1).backward();
    }
    parallel->begin({.weight = 1});
    torch::Tensor rest = loss(0);
    if (used(2)) rest = rest + loss(2);
    rest.backward();
    const auto reduced = parallel->reduce();
    ASSERT_TRUE(reduced && reduced->stands);
    ASSERT_TRUE(parallel->update(*reduced, {{kRate, kDecay}}));
  }
};

const UpdateRule kAdamW{.kind = UpdateRule::Kind::adamw};
const std::vector<UpdateRule> kRules{{}, {.momentum = 0.9}, kAdamW};

// 1e-12: float64 over nine steps, whose sums are in another order.
TEST(UnusedParameters, ArePassedOverAsPyTorchDoes) {
  for (const UpdateRule& rule : kRules)
    for (int ranks = 1; ranks <= 3; ++ranks)
      run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
        UnusedRun run(communicator, rule, torch::kDouble);
        for (int step = 0; step < kUnusedSteps; ++step) run.step(communicator, step);
        const auto expected = by_libtorch(rule, ranks);
        for (size_t i = 0; i < expected.size(); ++i)
          EXPECT_LT((run.weights[i].detach() - expected[i]).abs().max().item<double>(), 1e-12) << ranks << " " << i;
      });
}

TEST(UnusedParameters, AreAveragedAllTheSame) {
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    constexpr double kKept = 0.75;
    UnusedRun run(communicator, kAdamW, torch::kDouble, kKept);
    torch::Tensor average;
    for (int step = 0; step < kUnusedSteps; ++step) {
      run.step(communicator, step);
      const torch::Tensor now = run.weights[1].detach().clone();
      average = step == 0 ? now : kKept * average + (1 - kKept) * now;
    }
    ASSERT_TRUE(run.parallel->swap_average());
    EXPECT_LT((run.weights[1].detach() - average).abs().max().item<double>(), 1e-14);
  });
}

TEST(UnusedParameters, KeepTheirCountsOverAnEnd) {
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    UnusedRun whole(communicator, kAdamW, torch::kDouble), first(communicator, kAdamW, torch::kDouble),
        rest(communicator, kAdamW, torch::kDouble);
    for (int step = 0; step < kUnusedSteps; ++step) whole.step(communicator, step);
    for (int step = 0; step < 4; ++step) first.step(communicator, step);
    OwnedState& from = first.parallel->state();
    OwnedState& to = rest.parallel->state();
    const std::vector<Owned> kept = from.owned(), room = to.owned();
    for (size_t i = 0; i < kept.size(); ++i) {
      torch::Tensor(room[i].value).copy_(kept[i].value);
      for (size_t j = 0; j < kept[i].states.size(); ++j) torch::Tensor(room[i].states[j]).copy_(kept[i].states[j]);
    }
    to.set_missed(from.counts().missed());
    ASSERT_TRUE(to.resume(from.steps()));
    for (int step = 4; step < kUnusedSteps; ++step) rest.step(communicator, step);
    for (size_t i = 0; i < kUnusedSizes.size(); ++i)
      EXPECT_TRUE(rest.weights[i].equal(whole.weights[i])) << "bit by bit, " << i;
  });
}

/// Vectors go as they are, so nothing is lost: the steps of float32 without compression.
TEST(UnusedParameters, ArePassedOverByPowerSgdToo) {
  for (const UpdateRule& rule : kRules)
    testing::on_hosts(3, 2, [&](comm::Communicator& communicator) {
      UnusedRun run(communicator, rule, torch::kFloat);
      for (int step = 0; step < kUnusedSteps; ++step) {
        if (step == 3) {
          ASSERT_TRUE(run.parallel->compress(2));
        }
        run.step(communicator, step);
      }
      const auto expected = by_libtorch(rule, 3);
      for (size_t i = 0; i < expected.size(); ++i)  // 1e-5: float32 over nine steps of 0.05
        EXPECT_LT((run.weights[i].detach() - expected[i]).abs().max().item<double>(), 1e-5) << i;
    });
}

/// Of one bit, what is lost is owed: what is passed over owes as much as before, and is not moved.
TEST(UnusedParameters, ArePassedOverByOneBitAdamToo) {
  testing::on_hosts(2, 1, [&](comm::Communicator& communicator) {
    UnusedRun run(communicator, kAdamW, torch::kFloat);
    const auto is_used = [&](int step, size_t i) { return uses(0, 2, step, i) || uses(1, 2, step, i); };
    for (int step = 0; step < 4; ++step) run.step(communicator, step);
    ASSERT_TRUE(run.parallel->compress());
    for (int step = 4; step < kUnusedSteps; ++step) {
      std::vector<torch::Tensor> values, states;
      const auto read = [&](std::vector<torch::Tensor>& of_values, std::vector<torch::Tensor>& of_states) {
        of_values.clear(), of_states.clear();
        ASSERT_TRUE(run.parallel->state().settle());
        for (size_t i = 0; i < kUnusedSizes.size(); ++i) {
          of_values.push_back(run.weights[i].detach().clone());
          of_states.emplace_back();
        }
        for (const Owned& own : run.parallel->state().owned())
          for (size_t i = 0; i < kUnusedSizes.size(); ++i)
            if (run.parallel->flat().parameters()[own.parameter].is_same(run.weights[i]))
              of_states[i] = torch::cat(own.states).clone();
      };
      read(values, states);
      run.step(communicator, step);
      std::vector<torch::Tensor> new_values, new_states;
      read(new_values, new_states);
      for (size_t i = 0; i < kUnusedSizes.size(); ++i) {
        EXPECT_EQ(new_values[i].equal(values[i]), !is_used(step, i)) << step << " " << i;
        if (!states[i].defined()) continue;
        EXPECT_EQ(new_states[i].equal(states[i]), !is_used(step, i)) << step << " " << i;
      }
    }
  });
}

/// Whole runs: the second layer has a weight that nothing reads.
class UnusedWeights : public testing::KeptRuns {
 protected:
  UnusedWeights() {
    testing::write_sequential(job_.model.path, {{24, testing::kKeptSide * testing::kKeptSide},
                                                {6, 6, "torch.tanh(x)"},
                                                {5, 24, "torch.linear(x, self.weight)"}});
    job_.train.weight_decay = 0.2;
    job_.train.epochs = 1;
  }

  /// run(), which reads the parameters of a model that no rank has as a whole.
  void train() {
    const std::atomic<bool> leave = false;
    const Events events(-1);
    run_ranks(int(job_.devices.size()), comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const auto trainer = Trainer::create(job_, communicator, events, leave);
      ASSERT_TRUE(trainer) << trainer.error().message;
      const auto report = (*trainer)->run();
      ASSERT_TRUE(report) << report.error().message;
    });
  }
};

/// As they are kept, too, from which a run with whole parameters goes on.
TEST_F(UnusedWeights, StayAsTheyAreWhateverHoldsThem) {
  const int64_t first = 24 * testing::kKeptSide * testing::kKeptSide;
  const torch::Tensor begun = testing::script_weight(6, 6).detach().flatten();
  const torch::Tensor used = testing::script_weight(24, testing::kKeptSide * testing::kKeptSide).detach().flatten();
  for (const auto held : {job::Held::whole, job::Held::sharded})
    for (const auto& shares : {std::vector<double>{1}, {1, 2}}) {
      job_.checkpoint.folder = folder_.path("kept" + std::to_string(shares.size()) + std::to_string(int(held)));
      job_.checkpoint.resume = job::Switch::off;
      job_.memory.parameters = held;
      split(shares);
      train();
      job_.checkpoint.resume = job::Switch::on;
      job_.memory.parameters = job::Held::whole;
      const Finished again = run();
      ASSERT_EQ(again.error, "");
      EXPECT_EQ(again.report.checkpoints.resumed_from, kKeptSteps);
      EXPECT_TRUE(again.parameters.narrow(0, first, begun.numel()).equal(begun)) << shares.size();
      EXPECT_FALSE(again.parameters.narrow(0, 0, used.numel()).equal(used));
    }
}

}  // namespace
}  // namespace remuda::train
