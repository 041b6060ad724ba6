#include "confine/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

namespace remuda::confine {
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

TEST(NearestCores, IsTheUnionOfTheDevices) {
  EXPECT_EQ(nearest_cores(machine(), {"gpu:0"}, first(8)), (process::Affinity{{0, 1, 2, 3}, {0}}));
  EXPECT_EQ(nearest_cores(machine(), {"gpu:1", "gpu:0"}, first(8)), (process::Affinity{first(8), {0, 1}}));
}

TEST(NearestCores, StaysWithinTheCpusThisProcessMayUse) {
  EXPECT_THAT(nearest_cores(machine(), {"gpu:0"}, {2, 3, 4}).cores, ElementsAre(2, 3));
  EXPECT_THAT(nearest_cores(machine(), {"gpu:0"}, {6}).cores, IsEmpty()) << "none is near: as they are";
}

TEST(NearestCores, LeavesAllCpusWhereADeviceDoesNotTell) {
  EXPECT_THAT(nearest_cores(machine(), {"gpu:0", "gpu:2"}, first(8)).cores, IsEmpty());
  EXPECT_THAT(nearest_cores(machine(), {"gpu:9"}, first(8)).cores, IsEmpty());
  EXPECT_EQ(nearest_cores(machine(), {}, first(8)), process::Affinity{});
}

}  // namespace
}  // namespace remuda::confine
