#include "measure/limit.h"

#include <gtest/gtest.h>

namespace remuda::measure {
namespace {

Device gpu(const std::string& id, int generation, int width) {
  Device device{.id = id, .kind = DeviceKind::gpu};
  device.pcie_generation_max = Reading(generation);
  device.status.pcie_width = Reading(width);
  return device;
}

TEST(PcieLimit, IsTheRateOfTheLanesAfterTheLineCode) {
  EXPECT_NEAR(pcie_gbps(1, 1).value_or(0), 0.25, 1e-9);
  EXPECT_NEAR(pcie_gbps(3, 16).value_or(0), 15.754, 1e-3);
  EXPECT_NEAR(pcie_gbps(4, 16).value_or(0), 31.508, 1e-3);
  EXPECT_NEAR(pcie_gbps(5, 8).value_or(0), 31.508, 1e-3);
  EXPECT_NEAR(pcie_gbps(6, 16).value_or(0), 121.0, 1e-9);
}

TEST(PcieLimit, IsUnknownForGenerationsThatAreNot) {
  for (const int generation : {-1, 0, 7, 1000}) EXPECT_FALSE(pcie_gbps(generation, 16)) << generation;
  EXPECT_FALSE(pcie_gbps(4, 0));
}

TEST(BusLimit, TakesTheHighestGenerationAndTheWidthInUse) {
  Device device = gpu("a", 4, 8);
  device.status.pcie_generation = Reading(1);  // idle
  device.pcie_width_max = Reading(16);
  const auto limit = bus_limit(device);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->what, "PCIe 4 x8");
  EXPECT_NEAR(limit->gbps, 15.754, 1e-3);
}

TEST(BusLimit, IsUnknownWhereTheLinkIs) {
  EXPECT_FALSE(bus_limit(Device{.id = "a", .kind = DeviceKind::gpu}));
  EXPECT_FALSE(bus_limit(Device{.id = "cpu:0"}));
}

TEST(PairLimit, IsTheSlowerBusWhereNothingElseJoinsTheTwo) {
  const Inventory inventory{.devices = {gpu("a", 4, 16), gpu("b", 3, 16)}};
  const auto limit = pair_limit(inventory, inventory.devices[0], inventory.devices[1]);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->what, "PCIe 3 x16");
}

TEST(PairLimit, IsWhatTheDriverSaysWhereItSaysSo) {
  Link link{.a = "b", .b = "a"};
  link.fabric = Reading(Fabric::xgmi);
  link.max_gbps = Reading(50.0);
  const Inventory inventory{.devices = {gpu("a", 4, 16), gpu("b", 4, 16)}, .links = {link}};
  const auto limit = pair_limit(inventory, inventory.devices[0], inventory.devices[1]);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->gbps, 50);
}

TEST(PairLimit, IsNotThatOfTheBusWhereDirectLinksAre) {
  Link link{.a = "a", .b = "b"};
  link.fabric = Reading(Fabric::nvlink);
  const Inventory inventory{.devices = {gpu("a", 4, 16), gpu("b", 4, 16)}, .links = {link}};
  EXPECT_FALSE(pair_limit(inventory, inventory.devices[0], inventory.devices[1]));
}

}  // namespace
}  // namespace remuda::measure
