#include "confine/rank_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

namespace remuda::confine {
namespace {

using testing::ElementsAre;

std::vector<int> from_to(int from, int to) {
  std::vector<int> cores(to - from);
  std::iota(cores.begin(), cores.end(), from);
  return cores;
}

Device device(DeviceKind kind, int index, Reading<std::vector<int>> cores) {
  Device device{.kind = kind, .index = index, .cores = std::move(cores)};
  device.id = device.label();
  return device;
}

/// Two nodes of eight cores: a GPU near the first one, two near the second, and one that reports no cores.
Inventory two_nodes() {
  return {.devices = {device(DeviceKind::cpu, 0, from_to(0, 8)), device(DeviceKind::cpu, 1, from_to(8, 16)),
                      device(DeviceKind::gpu, 0, from_to(0, 8)), device(DeviceKind::gpu, 1, from_to(8, 16)),
                      device(DeviceKind::gpu, 2, from_to(8, 16)), device(DeviceKind::gpu, 3, {})}};
}

std::vector<RankCores> cores_of(const std::vector<std::string>& devices, const std::vector<int>& allowed) {
  return rank_cores(two_nodes(), devices, allowed);
}

auto has(const std::vector<int>& cores, size_t threads) {
  return testing::AllOf(testing::Field(&RankCores::cores, cores), testing::Field(&RankCores::threads, threads));
}

TEST(RankCores, OfCpuDevicesAreTheirOwn) {
  EXPECT_THAT(cores_of({"cpu:1", "cpu:0"}, from_to(0, 16)), ElementsAre(has(from_to(8, 16), 8), has(from_to(0, 8), 8)));
}

TEST(RankCores, OfAGpuAreTheNearestThatNoCpuDeviceHas) {
  EXPECT_THAT(cores_of({"gpu:0", "cpu:1"}, from_to(0, 16)), ElementsAre(has(from_to(0, 8), 8), has(from_to(8, 16), 8)));
  EXPECT_THAT(cores_of({"gpu:3", "cpu:1"}, from_to(0, 16)), ElementsAre(has(from_to(0, 8), 8), has(from_to(8, 16), 8)));
}

TEST(RankCores, OfGpusWithTheSameCoresAreUsedOnceInAll) {
  EXPECT_THAT(cores_of({"gpu:1", "gpu:2"}, from_to(0, 16)),
              ElementsAre(has(from_to(8, 16), 4), has(from_to(8, 16), 4)));
}

TEST(RankCores, OfRanksThatShareADeviceAreTheSame) {
  EXPECT_THAT(cores_of({"cpu:0", "cpu:1", "cpu:0"}, from_to(0, 16)),
              ElementsAre(has(from_to(0, 8), 4), has(from_to(8, 16), 8), has(from_to(0, 8), 4)));
  EXPECT_THAT(cores_of({"gpu:0", "cpu:0", "gpu:0"}, from_to(0, 16)),
              ElementsAre(has(from_to(4, 8), 2), has(from_to(0, 4), 4), has(from_to(4, 8), 2)));
}

TEST(RankCores, ACpuDeviceLeavesTwoForEachGpuNearIt) {
  EXPECT_THAT(cores_of({"gpu:0", "cpu:0"}, from_to(0, 16)), ElementsAre(has({6, 7}, 2), has(from_to(0, 6), 6)));
  EXPECT_THAT(cores_of({"gpu:1", "cpu:1", "gpu:2"}, from_to(0, 16)),
              ElementsAre(has(from_to(12, 16), 2), has(from_to(8, 12), 4), has(from_to(12, 16), 2)));
}

TEST(RankCores, ACpuDeviceKeepsTheLargerHalf) {
  EXPECT_THAT(cores_of({"gpu:0", "cpu:0"}, {0, 1, 2}), ElementsAre(has({2}, 1), has({0, 1}, 2)));
  EXPECT_THAT(cores_of({"gpu:0", "cpu:0"}, {5}), ElementsAre(has({5}, 1), has({5}, 1))) << "there is only one";
}

TEST(RankCores, AreAmongThoseThatThisProcessMayUse) {
  EXPECT_THAT(cores_of({"gpu:1", "cpu:0"}, {0, 1, 9}), ElementsAre(has({9}, 1), has({0, 1}, 2)));
  EXPECT_THAT(cores_of({"gpu:1"}, {0, 1}), ElementsAre(has({0, 1}, 2))) << "none near it: any";
}

}  // namespace
}  // namespace remuda::confine
