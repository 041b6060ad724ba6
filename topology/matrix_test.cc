#include "topology/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/testing/machines.h"

namespace remuda::topology {
namespace {

using testing::ElementsAre;

TEST(Matrix, HoldsTheWordsOfTheMachine) {
  const Inventory inventory = cube_mesh();
  const Matrix matrix = make_matrix(inventory);
  ASSERT_EQ(matrix.devices.size(), 8U);
  std::vector<std::string> first;
  for (const auto& pair : matrix.pairs[0]) first.push_back(pair.label);
  EXPECT_THAT(first, ElementsAre("X", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"));
  EXPECT_EQ(matrix.pairs[3][0].speed->gbps, 50);
  EXPECT_EQ(matrix.pairs[7][0].speed->gbps, 10);
  EXPECT_FALSE(matrix.pairs[0][0].speed);
}

TEST(Matrix, IsSymmetricWhateverTheOrderOfTheEnds) {
  Inventory inventory = pairs();
  for (Link& link : inventory.links) std::swap(link.a, link.b);
  measure(inventory, "GPU-3", "GPU-1", 7);
  const Matrix matrix = make_matrix(inventory);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(matrix.pairs[i][j].label, matrix.pairs[j][i].label);
      EXPECT_EQ(matrix.pairs[i][j].speed, matrix.pairs[j][i].speed);
    }
  EXPECT_EQ(matrix.pairs[1][3].speed->gbps, 7);
}

TEST(Matrix, ShowsCpuDevicesOnlyWithoutGpus) {
  Inventory inventory = two_sockets();
  EXPECT_EQ(make_matrix(inventory).devices.size(), 2U);
  EXPECT_EQ(make_matrix(inventory).pairs[0][1].label, "SYS");
  inventory.devices.push_back({.id = "GPU-9", .kind = DeviceKind::gpu});
  const Matrix matrix = make_matrix(inventory);
  ASSERT_EQ(matrix.devices.size(), 1U);
  EXPECT_EQ(matrix.devices[0]->id, "GPU-9");
}

TEST(Matrix, ShowsAPartitionedGpuWithoutSpeeds) {
  Inventory inventory = pairs();
  inventory.devices[1].partitioned = true;
  inventory.devices.push_back({.id = "MIG-0", .kind = DeviceKind::partition, .parent = "GPU-1"});
  const Matrix matrix = make_matrix(inventory);
  ASSERT_EQ(matrix.devices.size(), 4U);
  EXPECT_EQ(matrix.pairs[0][1].label, "NV12");
  EXPECT_FALSE(matrix.pairs[0][1].speed);
  EXPECT_TRUE(matrix.pairs[0][2].speed);
}

TEST(Matrix, SpeedsAreZeroWhereNothingIsKnown) {
  Inventory inventory = pairs();
  inventory.links.clear();
  measure(inventory, "GPU-0", "GPU-2", 12);
  const Speeds speeds = make_matrix(inventory).speeds();
  EXPECT_THAT(speeds[0], ElementsAre(0, 0, 12, 0));
}

TEST(Matrix, OfAMachineWithoutDevicesIsEmpty) {
  const Inventory inventory{.host = "host1"};
  EXPECT_TRUE(make_matrix(inventory).pairs.empty());
}

TEST(Matrix, LinksToStrangersAreLeftOut) {
  Inventory inventory = pairs();
  inventory.links.push_back({.a = "GPU-0", .b = "nobody", .path = Path::pix});
  inventory.measured_links.push_back({.a = "nobody", .b = "GPU-0", .gbps = 5});
  EXPECT_EQ(make_matrix(inventory).pairs[0][1].label, "NV12");
}

}  // namespace
}  // namespace remuda::topology
