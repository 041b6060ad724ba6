#include "confine/device_nodes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::confine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DeviceNodes : public testing::Test {
 protected:
  Device& gpu(const std::string& vendor, std::optional<int> minor) {
    Device device;
    device.index = static_cast<int>(machine_.devices.size());
    device.id = fmt::format("gpu:{}", device.index);
    device.kind = DeviceKind::gpu;
    device.vendor = vendor;
    if (minor) device.minor = *minor;
    machine_.devices.push_back(device);
    return machine_.devices.back();
  }
  /// Puts the device on the PCI bus, with a driver that offers these nodes.
  void on_bus(Device& device, const std::vector<std::pair<std::string, std::string>>& nodes) {
    device.pci = fmt::format("0000:{:02x}:00.0", device.index);
    const std::string folder = "bus/pci/devices/" + device.pci.value();
    sysfs_.make_folder(folder + "/driver");
    for (const auto& [name, numbers] : nodes) sysfs_.write(fmt::format("{}/drm/{}/dev", folder, name), numbers + "\n");
  }
  Withheld withheld(const std::vector<std::string>& granted) const {
    return withheld_nodes(machine_, granted, sysfs_.path());
  }

  ScratchFolder sysfs_;
  Inventory machine_;
};

TEST_F(DeviceNodes, AreThoseOfTheOthers) {
  for (const int minor : {0, 1, 2}) gpu("NVIDIA", minor);
  EXPECT_THAT(withheld({"gpu:1"}).nodes, ElementsAre(DeviceNode{195, 0}, DeviceNode{195, 2}));
  EXPECT_THAT(withheld({"gpu:0", "gpu:1", "gpu:2"}).nodes, IsEmpty());
  EXPECT_THAT(withheld({}).nodes.size(), 3U);
  EXPECT_THAT(withheld({}).unknown, IsEmpty());
}

TEST_F(DeviceNodes, AreToldOfEachDevice) {
  gpu("NVIDIA", 3);
  gpu("AMD", std::nullopt);
  on_bus(machine_.devices[0], {{"card0", "226:0"}});
  on_bus(machine_.devices[1], {});
  const auto all = all_nodes(machine_, sysfs_.path());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].device, "gpu:0");
  EXPECT_THAT(all[0].nodes, ElementsAre(DeviceNode{195, 3}, DeviceNode{226, 0}));
  EXPECT_TRUE(all[0].are_all);
  EXPECT_THAT(all[1].nodes, IsEmpty());
  EXPECT_FALSE(all[1].are_all);
}

TEST_F(DeviceNodes, OfGraphicsAreFoundByPciAddress) {
  gpu("AMD", 128);
  on_bus(machine_.devices[0], {{"card1", "226:1"}, {"renderD128", "226:128"}});
  gpu("AMD", 129);
  on_bus(machine_.devices[1], {{"card2", "226:2"}, {"renderD129", "226:129"}, {"card2-DP-1", "nonsense"}});
  EXPECT_THAT(withheld({"gpu:0"}).nodes, ElementsAre(DeviceNode{226, 2}, DeviceNode{226, 129}));
}

TEST_F(DeviceNodes, OfAGrantedPartsWholeAreKept) {
  gpu("NVIDIA", 0);
  gpu("NVIDIA", 1);
  for (const char* id : {"MIG-a", "MIG-b"}) {
    Device& part = gpu("NVIDIA", std::nullopt);
    part.id = id;
    part.kind = DeviceKind::partition;
    part.parent = "gpu:1";
  }
  EXPECT_THAT(withheld({"MIG-a"}).nodes, ElementsAre(DeviceNode{195, 0}));
  EXPECT_THAT(withheld({"gpu:0"}).nodes, ElementsAre(DeviceNode{195, 1}));
}

TEST_F(DeviceNodes, OfPartsThatHaveTheirOwnAreToldApart) {
  gpu("AMD", 128);
  on_bus(machine_.devices[0], {{"renderD128", "226:128"}});
  for (const int minor : {128, 129}) {
    Device& part = gpu("AMD", minor);
    part.kind = DeviceKind::partition;
    part.parent = "gpu:0";
  }
  EXPECT_THAT(withheld({"gpu:1"}).nodes, ElementsAre(DeviceNode{226, 129}));
  EXPECT_THAT(withheld({"gpu:2"}).nodes, IsEmpty()) << "the whole needs the first one's";
}

TEST_F(DeviceNodes, ThatAreNotToldAreNamed) {
  gpu("NVIDIA", 0);
  gpu("NVIDIA", std::nullopt);
  EXPECT_THAT(withheld({"gpu:0"}).unknown, ElementsAre("gpu:1"));
  EXPECT_THAT(withheld({"gpu:1"}).unknown, IsEmpty());
  on_bus(machine_.devices[1], {{"renderD130", "226:130"}});
  EXPECT_THAT(withheld({"gpu:0"}).unknown, ElementsAre("gpu:1")) << "that is not all of them";
}

TEST_F(DeviceNodes, ThatMayBeOfOnesWhichAreNotToldAreWithheld) {
  gpu("NVIDIA", 3);
  gpu("NVIDIA", std::nullopt).pci = "0000:77:00.0";
  const Withheld others = withheld({"gpu:0"});
  EXPECT_THAT(others.unknown, ElementsAre("gpu:1"))
      << "that the bus does not show it is no proof that it has no driver";
  EXPECT_THAT(others.nodes, testing::Contains(DeviceNode{195, 0}));
  EXPECT_THAT(others.nodes, testing::Not(testing::Contains(DeviceNode{195, 3}))) << "the granted one's";
  EXPECT_THAT(others.nodes, testing::Not(testing::Contains(DeviceNode{195, 255}))) << "all jobs need it";
  gpu("AMD", std::nullopt);
  EXPECT_THAT(withheld({"gpu:0"}).nodes, testing::Contains(DeviceNode{226, 128}));
  EXPECT_THAT(withheld({"gpu:1"}).nodes, ElementsAre(DeviceNode{195, 3})) << "the others' might be its own";
  EXPECT_THAT(withheld({"gpu:1"}).unknown, ElementsAre("gpu:2"));
}

TEST_F(DeviceNodes, AreNoneWhereThereIsNoDriver) {
  gpu("NVIDIA", std::nullopt).pci = "0000:77:00.0";
  sysfs_.make_folder("bus/pci/devices/0000:77:00.0");
  EXPECT_THAT(withheld({}).nodes, IsEmpty());
  EXPECT_THAT(withheld({}).unknown, IsEmpty());
}

TEST_F(DeviceNodes, AreNotThoseOfProcessors) {
  gpu("AMD", std::nullopt).kind = DeviceKind::cpu;
  EXPECT_THAT(withheld({}).unknown, IsEmpty());
}

}  // namespace
}  // namespace remuda::confine
