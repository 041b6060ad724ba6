// What a rank holds of blocks, by one thread that gives a device more and more work: right only as long as it waits
// wherever it does.
#include "train/sharded_parts.h"

#include <functional>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/sharded.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using testing::WaitKind;

constexpr size_t kBlocks = 5, kElements = 64;
constexpr int kRounds = 3;

std::vector<std::vector<torch::Tensor>> blocks_of_tens() {
  std::vector<std::vector<torch::Tensor>> blocks;
  for (size_t block = 0; block < kBlocks; ++block)
    blocks.push_back({torch::full({int64_t(kElements)}, 10.0 * double(block)).requires_grad_()});
  return blocks;
}

using Seen = std::vector<torch::Tensor>;
/// What a scenario does with the parts of one rank; what it reads goes to `seen`.
using Scenario = std::function<void(ShardedParts& parts, const DeviceOps& ops, Seen& seen)>;

void read_block(ShardedParts& parts, const DeviceOps& ops, size_t block, size_t room, Seen& seen) {
  const torch::Tensor memory = parts.value_memory(block, room);
  ops.after(parts.fill(block, room, memory, ops.here(), false).value());
  seen.push_back(memory.to(torch::kCPU, torch::kFloat, false, /*copy=*/true));
}

void update(ShardedParts& parts, const DeviceOps& ops) {
  parts.take_sums();
  for (size_t block = 0; block < kBlocks; ++block) parts.values(block).sub_(parts.sums(block));
  parts.give_values();
  ASSERT_TRUE(ops.wait(ops.here(), "an update", 10));
}

/// Rounds that read all blocks, make gradients of these, in two passes, and subtract their sums.
void train(ShardedParts& parts, const DeviceOps& ops, Seen& seen) {
  for (int round = 0; round < kRounds; ++round) {
    for (size_t pass = 0; pass < 2; ++pass)
      for (size_t block = 0; block < kBlocks; ++block) {
        const size_t room = block % ShardedParts::kRooms;
        const torch::Tensor memory = parts.value_memory(block, room);
        ops.after(parts.fill(block, room, memory, ops.here(), false).value());
        const torch::Tensor gradients = parts.gradient_memory(block, room);
        torch::Tensor(gradients).add_(memory, 0.25).add_(double(round + 1));
        const Moment given = parts.give_gradients(block, room, gradients, 1);
        ASSERT_TRUE(parts.add_up(block, room, given, /*is_empty=*/false, /*is_first=*/pass == 0));
      }
    update(parts, ops);
  }
  for (size_t block = 0; block < kBlocks; ++block) read_block(parts, ops, block, 0, seen);
}

void only_add_up(ShardedParts& parts, const DeviceOps& ops, Seen& seen) {
  for (size_t block = 0; block < kBlocks; ++block) {
    const size_t room = block % ShardedParts::kRooms;
    const torch::Tensor gradients = parts.gradient_memory(block, room);
    torch::Tensor(gradients).add_(double(block + 1));
    ASSERT_TRUE(parts.add_up(block, room, parts.give_gradients(block, room, gradients, 1), false, true));
  }
  update(parts, ops);
  read_block(parts, ops, 3, 0, seen);
  for (size_t block = 0; block < kBlocks; ++block)
    seen.push_back(parts.values(block).to(torch::kCPU, torch::kFloat, false, /*copy=*/true));
}

/// As a forward pass does whose computing lags behind: all is fetched before the device has any of it.
void fetch_ahead(ShardedParts& parts, const DeviceOps& ops, Seen& seen) {
  std::vector<torch::Tensor> memory;
  std::vector<Moment> there;
  for (size_t block = 0; block < kBlocks; ++block) {
    const size_t room = block % ShardedParts::kRooms;
    memory.push_back(parts.value_memory(block, room));
    there.push_back(parts.fill(block, room, memory.back(), ops.here(), false).value());
  }
  for (size_t block = 0; block < kBlocks; ++block) {
    ops.after(there[block]);
    seen.push_back(memory[block].to(torch::kCPU, torch::kFloat, false, /*copy=*/true));
  }
}

Seen tens() {
  Seen values;
  for (const auto& block : blocks_of_tens()) values.push_back(block[0].detach());
  return values;
}

/// By one rank. `left_out`: the number of a wait of this kind that is not waited for; -1: none. `count`: of these
/// waits.
Seen computed(const Scenario& scenario, torch::Device device, UpdatesOn updates_on, WaitKind kind = {},
              int left_out = -1, int* count = nullptr) {
  const torch::NoGradGuard no_grad;
  Seen seen;
  run_ranks(1, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const torch::NoGradGuard no_grad_here;
    const DeviceOps ops = DeviceOps::open(device).value();
    const std::vector<size_t> sizes(kBlocks, kElements), groups(kBlocks, 0), each(kBlocks, 1);
    const FlatLayout layout(sizes, groups, {.state_shares = {1}, .blocks = each});
    const auto parts = ShardedParts::create(communicator, ops, layout, blocks_of_tens(), updates_on).value();
    testing::watch_waits(0, kind, left_out);
    scenario(*parts, ops, seen);
    const int waits = testing::watch_waits(0, kind, -1);
    if (count) *count = waits;
  });
  return seen;
}

/// Work that nobody waits for is not done, so that none is done in time by chance.
void expect_each_wait_is_needed(const Scenario& scenario, const Seen& right, UpdatesOn updates_on, WaitKind kind,
                                int least) {
  const bool for_compute = kind == WaitKind::copies_for_compute;
  testing::configure_standin(0, {.lazy_compute = for_compute, .lazy_copies = !for_compute});
  const torch::Device device(torch::kXPU, 0);
  int count = 0;
  const Seen expected = computed(scenario, device, updates_on, kind, -1, &count);
  EXPECT_TRUE(testing::same_bits(expected, right));
  EXPECT_GE(count, least);
  for (int left_out = 0; left_out < count; ++left_out)
    EXPECT_FALSE(testing::same_bits(computed(scenario, device, updates_on, kind, left_out), expected))
        << "wait " << left_out << " of " << count;
  testing::configure_standin(0, {});
}

Seen on_cpu(const Scenario& scenario) { return computed(scenario, torch::kCPU, UpdatesOn::device); }

TEST(EveryWaitOfShardedParts, OfTheDeviceIsNeeded) {
  for (const UpdatesOn updates_on : {UpdatesOn::device, UpdatesOn::host})
    for (const WaitKind kind : {WaitKind::copies_for_compute, WaitKind::compute_for_copies})
      expect_each_wait_is_needed(train, on_cpu(train), updates_on, kind, 2 * kRounds * int(kBlocks));
}

TEST(EveryWaitOfShardedParts, OfTheHostIsNeeded) {
  const WaitKind kind = WaitKind::host_for_copies;
  expect_each_wait_is_needed(only_add_up, on_cpu(only_add_up), UpdatesOn::host, kind, int(kBlocks));
  expect_each_wait_is_needed(only_add_up, on_cpu(only_add_up), UpdatesOn::device, kind, int(kBlocks) + 1);
  expect_each_wait_is_needed(fetch_ahead, tens(), UpdatesOn::device, kind, int(kBlocks - ShardedParts::kRooms));
}

}  // namespace
}  // namespace remuda::train
