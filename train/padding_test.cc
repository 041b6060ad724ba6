// What lies between parameters in the flat tensors: room, and nothing else.
#include <algorithm>
#include <gtest/gtest.h>
#include <mutex>

#include "comm/testing/run_ranks.h"
#include "train/testing/parallel.h"

namespace remuda::train {
namespace {

/// None of them ends at a cache line.
std::vector<torch::Tensor> odd_weights() {
  std::vector<torch::Tensor> all;
  for (const int64_t size : {3, 17, 5, 40})
    all.push_back(torch::arange(1, size * 30 + 1, torch::kFloat).view({size, 30}).div(1000).requires_grad_(true));
  all.push_back(torch::full({7}, 0.5, torch::requires_grad()));
  return all;
}

torch::Tensor odd_loss(const std::vector<torch::Tensor>& weights, int round) {
  torch::Tensor sum = torch::zeros({});
  for (const torch::Tensor& weight : weights) sum = sum + (weight * weight).sum() * (1 + round % 3) + weight.sum();
  return sum;
}

std::unique_ptr<DataParallel> make_odd_parallel(comm::Communicator& communicator,
                                                const std::vector<torch::Tensor>& weights, ParallelOptions options) {
  options.rule = {.kind = UpdateRule::Kind::adamw};
  options.bucket_bytes = 2000;
  return DataParallel::create(
             communicator, testing::cpu_ops(), weights, [&] { odd_loss(weights, 0).backward(); }, std::move(options))
      .value();
}

void make_odd_steps(DataParallel& parallel, const std::vector<torch::Tensor>& weights, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    parallel.begin({.weight = 1, .loss_sum = 1});
    odd_loss(weights, round).backward();
    const ReducedStep step = parallel.reduce().value();
    ASSERT_TRUE(step.stands);
    ASSERT_TRUE(parallel.update(step, {{0.01, 0.1}}));
  }
}

/// Of a flat tensor, what is of no parameter.
torch::Tensor padding_of(const FlatParameters& flat, const torch::Tensor& values) {
  auto is_padding = torch::ones({values.numel()}, torch::kBool);
  for (size_t i = 0; i < flat.layout().parameters(); ++i)
    is_padding.narrow(0, int64_t(flat.layout().offset(i)), int64_t(flat.layout().size(i))).fill_(false);
  return values.masked_select(is_padding);
}

bool begins_at_line(const torch::Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 64 == 0; }

TEST(Padding, HasEachParameterAndItsGradientBeginAtACacheLine) {
  comm::run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weights = odd_weights();
    const auto parallel = make_odd_parallel(communicator, weights, {});
    for (const torch::Tensor& weight : weights) {
      EXPECT_TRUE(begins_at_line(weight));
      EXPECT_TRUE(begins_at_line(weight.grad()));
    }
  });
}

TEST(Padding, StaysZeroWhateverStepsAreMadeOf) {
  struct Case {
    const char* name;
    ParallelOptions options;
    bool compresses = false;
    size_t rank = 0;
  };
  for (const Case& one : {Case{"plain", {.clip_norm = 1, .average = 0.9}},
                          Case{"rounded", {.sent_as = torch::kBFloat16, .gradients_sent_as = torch::kBFloat16}},
                          Case{"1-bit", {}, true}, Case{"powersgd", {.average = 0.9}, true, 1}})
    comm::run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const auto weights = odd_weights();
      const auto parallel = make_odd_parallel(communicator, weights, one.options);
      make_odd_steps(*parallel, weights, 2);
      if (one.compresses) {
        ASSERT_TRUE(parallel->compress(one.rank));
      }
      make_odd_steps(*parallel, weights, 3);
      ASSERT_TRUE(parallel->swap_average());
      const FlatParameters& flat = parallel->flat();
      const torch::Tensor padding = padding_of(flat, flat.values().host());
      EXPECT_GT(padding.numel(), 0);
      EXPECT_EQ(padding.abs().max().item<float>(), 0) << one.name;
      EXPECT_EQ(padding_of(flat, flat.gradients().host()).abs().max().item<float>(), 0) << one.name;
      for (const torch::Tensor& weight : weights) EXPECT_GT(weight.abs().min().item<float>(), 0) << one.name;
    });
}

/// What ranks own, as checkpoints and buddies know it, is all elements of all parameters, once each.
TEST(Padding, IsNotOwned) {
  std::mutex mutex;
  std::vector<std::vector<int>> owners;
  for (const torch::Tensor& weight : odd_weights()) owners.emplace_back(size_t(weight.numel()));
  size_t elements = 0;
  comm::run_ranks(3, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto weights = odd_weights();
    const auto parallel = make_odd_parallel(communicator, weights, {});
    const std::lock_guard lock(mutex);
    for (const Owned& own : parallel->state().owned()) {
      const auto place = std::ranges::find_if(
          weights, [&](const auto& one) { return one.is_same(parallel->flat().parameters()[own.parameter]); });
      for (int64_t i = 0; i < own.value.numel(); ++i)
        ++owners.at(size_t(place - weights.begin())).at(own.first + size_t(i));
      for (const torch::Tensor& state : own.states) EXPECT_EQ(state.numel(), own.value.numel());
    }
    elements += parallel->flat().layout().owned(communicator.rank());
  });
  EXPECT_EQ(elements, size_t{(3 + 17 + 5 + 40) * 30 + 7});
  for (const auto& of_weight : owners) EXPECT_EQ(std::ranges::count(of_weight, 1), std::ssize(of_weight));
}

}  // namespace
}  // namespace remuda::train
