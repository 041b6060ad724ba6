#include "probe/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::probe {
namespace {

using testing::ElementsAre;
using testing::Field;

Device gpu(const std::string& id, const std::string& pci) { return {.id = id, .kind = DeviceKind::gpu, .pci = pci}; }
auto ids(const auto&... id) { return ElementsAre(Field(&Device::id, id)...); }

TEST(Merge, TakesDevicesWithOnePciAddressForOne) {
  Finding driver, bus;
  driver.devices = {gpu("x", "0000:27:00.0")};
  driver.devices[0].uuid = "GPU-1";
  driver.devices[0].numa_node = Missing{MissingReason::unsupported, "the driver does not report it"};
  driver.devices[0].status.busy = 0.5;
  bus.devices = {gpu("0000:27:00.0", "0000:27:00.0")};
  bus.devices[0].model = "a card";
  bus.devices[0].numa_node = 1;
  bus.devices[0].status.busy = Missing{MissingReason::no_driver, "the bus does not report it"};
  const Inventory inventory = merge({driver, bus});
  ASSERT_EQ(inventory.devices.size(), 1u);
  const Device& device = inventory.devices[0];
  EXPECT_EQ(device.id, "GPU-1");
  EXPECT_EQ(device.model, "a card");
  EXPECT_EQ(device.numa_node, Reading<int>(1)) << "a value fills a reading that is missing";
  EXPECT_EQ(device.status.busy, Reading<double>(0.5)) << "the first finding wins";
}

TEST(Merge, PutsGpusFirstInTheOrderOfTheirAddresses) {
  Finding cpus, gpus;
  cpus.devices = {{.id = "cpu:0"}, {.id = "cpu:1"}};
  gpus.devices = {gpu("a", "0000:05:00.0"), gpu("b", "0000:38:00.0"), {.id = "no address", .kind = DeviceKind::gpu}};
  const Inventory inventory = merge({cpus, gpus});
  EXPECT_THAT(inventory.devices, ids("0000:05:00.0", "0000:38:00.0", "gpu:2", "cpu:0", "cpu:1"));
  EXPECT_EQ(inventory.devices[1].index, 1);
  EXPECT_EQ(inventory.devices[4].label(), "cpu:1");
}

TEST(Merge, ALostGpuKeepsItsPlaceThoughItsAddressIsNotKnown) {
  Finding driver;
  driver.devices = {gpu("a", "0000:05:00.0"), {.id = "lost", .kind = DeviceKind::gpu}, gpu("b", "0000:38:00.0")};
  EXPECT_THAT(merge({driver}).devices, ids("0000:05:00.0", "gpu:1", "0000:38:00.0"));
  std::swap(driver.devices[0], driver.devices[1]);
  EXPECT_THAT(merge({driver}).devices, ids("gpu:0", "0000:05:00.0", "0000:38:00.0"));
}

TEST(Merge, LinksAndParentsFollowTheFinalIds) {
  Finding driver, bus;
  driver.devices = {gpu("first", "0000:05:00.0"), gpu("second", "0000:06:00.0")};
  driver.devices[0].uuid = "GPU-1";
  driver.devices.push_back({.id = "part", .kind = DeviceKind::partition, .parent = "first", .uuid = "MIG-1"});
  driver.links = {{.a = "second", .b = "first", .fabric = Fabric::nvlink}};
  bus.devices = {gpu("0000:05:00.0", "0000:05:00.0"), gpu("0000:06:00.0", "0000:06:00.0")};
  bus.links = {{.a = "0000:05:00.0", .b = "0000:06:00.0", .path = Path::pix},
               {.a = "0000:06:00.0", .b = "mlx5_0", .path = Path::sys}};
  bus.nics = {{.name = "mlx5_0"}};
  const Inventory inventory = merge({driver, bus});
  ASSERT_EQ(inventory.links.size(), 2u);
  const Link* pair = inventory.link("GPU-1", "0000:06:00.0");
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(pair->fabric, Reading<Fabric>(Fabric::nvlink));
  EXPECT_EQ(pair->path, Reading<Path>(Path::pix));
  EXPECT_NE(inventory.link("0000:06:00.0", "mlx5_0"), nullptr);
  EXPECT_EQ(inventory.find("MIG-1")->parent, "GPU-1");
}

TEST(Merge, PartitionsOfOneGpuStayApart) {
  Finding driver;
  driver.devices = {gpu("g", "0000:05:00.0")};
  for (const char* id : {"p", "q"})
    driver.devices.push_back({.id = id, .kind = DeviceKind::partition, .parent = "g", .pci = "0000:05:00.0"});
  EXPECT_THAT(merge({driver}).devices, ids("0000:05:00.0", "partition:0", "partition:1"));
}

TEST(Merge, JoinsDriversNodesAndCards) {
  Finding one, two;
  one.drivers = {{.vendor = "A", .version = "1"}};
  two.drivers = {{.vendor = "A", .module_version = "2"}};
  one.numa = {{.node = 0, .memory_bytes = 5}};
  two.numa = {{.node = 0, .memory_bytes = 6}, {.node = 1}};
  const Inventory inventory = merge({one, two});
  ASSERT_EQ(inventory.drivers.size(), 1u);
  EXPECT_EQ(inventory.drivers[0].module_version, Reading<std::string>("2"));
  ASSERT_EQ(inventory.numa.size(), 2u);
  EXPECT_EQ(inventory.numa[0].memory_bytes, Reading<int64_t>(5));
}

TEST(Merge, OfNothingIsAnEmptyInventory) { EXPECT_TRUE(merge({}).devices.empty()); }

}  // namespace
}  // namespace remuda::probe
