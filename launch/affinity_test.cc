#include "launch/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

namespace remuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Device gpu(int index, std::vector<int> cores, int node) {
  Device device;
  device.id = "gpu:" + std::to_string(index);
  device.kind = DeviceKind::gpu;
  if (!cores.empty()) device.cores = std::move(cores);
  if (node >= 0) device.numa_node = node;
  return device;
}

Inventory machine() {
  Inventory inventory;
  inventory.devices = {gpu(0, {0, 1, 2, 3}, 0), gpu(1, {4, 5, 6, 7}, 1), gpu(2, {}, -1)};
  return inventory;
}

std::vector<int> first(int count) {
  std::vector<int> cores(count);
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

TEST(Affinity, IsTheUnionOfTheDevices) {
  EXPECT_EQ(affinity(machine(), {"gpu:0"}, first(8)), (Affinity{{0, 1, 2, 3}, {0}}));
  EXPECT_EQ(affinity(machine(), {"gpu:1", "gpu:0"}, first(8)), (Affinity{first(8), {0, 1}}));
}

TEST(Affinity, StaysWithinTheCpusThisProcessMayUse) {
  EXPECT_THAT(affinity(machine(), {"gpu:0"}, {2, 3, 4}).cores, ElementsAre(2, 3));
  EXPECT_THAT(affinity(machine(), {"gpu:0"}, {6}).cores, IsEmpty()) << "none is near: as they are";
}

TEST(Affinity, LeavesAllCpusWhereADeviceDoesNotTell) {
  EXPECT_THAT(affinity(machine(), {"gpu:0", "gpu:2"}, first(8)).cores, IsEmpty());
  EXPECT_THAT(affinity(machine(), {"gpu:9"}, first(8)).cores, IsEmpty());
  EXPECT_EQ(affinity(machine(), {}, first(8)), Affinity{});
}

TEST(Affinity, AppliesToTheThreadThatAsks) {
  const std::vector<int> before = allowed_cores();
  ASSERT_THAT(before, testing::Not(IsEmpty()));
  std::vector<int> after;
  std::thread([&] {
    AffinityPlan({{before.back(), 65000, -3}, {0}}).apply();
    after = allowed_cores();
  }).join();
  EXPECT_THAT(after, ElementsAre(before.back()));
  EXPECT_EQ(allowed_cores(), before);
}

}  // namespace
}  // namespace remuda
