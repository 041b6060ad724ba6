#include "route/bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "route/testing/networks.h"

namespace remuda::route {
namespace {

using testing::ElementsAre;

TEST(LeastCost, OnASwitchItIsThatOfARing) {
  const Cost least = least_cost(star(8, 10, 3));
  EXPECT_DOUBLE_EQ(least.s_per_byte, 2.0 * 7 / 8 / 10e9);
  EXPECT_DOUBLE_EQ(least.latency_s, 3e-6);
}

TEST(LeastCost, AMeshHasAllItsLinks) {
  EXPECT_DOUBLE_EQ(least_cost(full_mesh(4, 10)).s_per_byte, 2.0 * 3 / (4 * 3 * 10e9));
}

TEST(LeastCost, AnIslandsUplinkCarriesAllOnce) {
  EXPECT_DOUBLE_EQ(least_cost(two_level({4, 4}, 100, 10)).s_per_byte, 1 / 10e9);
}

TEST(LeastCost, ASlowDevicesLinkCarriesAllOnce) {
  Network network = star(8, 100);
  network.channels[0].gbps = network.channels[1].gbps = 1;
  for (size_t i = 1; i < 8; ++i) network.routes[0][i].gbps = network.routes[i][0].gbps = 1;
  EXPECT_DOUBLE_EQ(least_cost(network).s_per_byte, 1 / 1e9);
}

TEST(LeastCost, IsNothingWhereARouteIsNotKnown) {
  Network network = full_mesh(3, 10);
  network.routes[0][1].gbps = 0;
  EXPECT_EQ(least_cost(network), Cost{});
  EXPECT_EQ(least_cost(full_mesh(1, 10)), Cost{});
}

TEST(LeastSeconds, IsTheLargerPart) {
  EXPECT_DOUBLE_EQ(least_seconds({2e-6, 1e-9}, 1000), 2e-6);
  EXPECT_DOUBLE_EQ(least_seconds({2e-6, 1e-9}, 5000), 5e-6);
}

TEST(IslandPartitions, FollowTheSpeeds) {
  EXPECT_THAT(island_partitions(two_level({2, 3}, 100, 10)),
              ElementsAre(ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4))));
  EXPECT_TRUE(island_partitions(full_mesh(4, 10)).empty());
  EXPECT_THAT(island_partitions(machine("nv-8gpu-pix-phb-sys")),
              ElementsAre(ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5), ElementsAre(6, 7)),
                          ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7))));
}

TEST(IslandPartitions, SpeedsThatScatterAreOneLevel) {
  Network network = two_level({2, 3}, 100, 10);
  network.routes[2][3].gbps = network.routes[3][2].gbps = 97;
  network.routes[4][3].gbps = network.routes[3][4].gbps = 94;
  network.routes[0][4].gbps = network.routes[4][0].gbps = 9.8;
  EXPECT_THAT(island_partitions(network), ElementsAre(ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4))));
  EXPECT_TRUE(island_partitions(scattered_mesh(64)).empty());
}

TEST(NestedOrder, PutsIslandsOfIslandsTogether) {
  EXPECT_THAT(nested_order(full_mesh(3, 10)), ElementsAre(0, 1, 2));
  EXPECT_THAT(nested_order(relabelled(machine("nv-8gpu-pix-phb-sys"), {0, 4, 2, 6, 1, 5, 3, 7})),
              ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
}

TEST(IslandPartitions, DevicesWithoutKnownLinksAreNone) {
  Network network = full_mesh(2, 10);
  network.routes[0][1].gbps = network.routes[1][0].gbps = 0;
  EXPECT_TRUE(island_partitions(network).empty());
}

}  // namespace
}  // namespace remuda::route
