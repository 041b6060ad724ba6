#include "probe/nvml/read_links.h"

#include <cstdlib>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "probe/nvml/testing/fake_lib.h"

namespace remuda::probe::nvml {
namespace {

constexpr const char* kSwitch = "0000:c3:00.0";
const std::set<std::string> kGpus{"0000:01:00.0", "0000:02:00.0"};

Port to_gpu(const std::string& pci) { return {.to = Port::To::gpu, .pci = pci, .version = 5}; }
Port to(Port::To kind) { return {.to = kind, .version = 5}; }

LinkEnd end(const std::string& id, const std::string& pci, std::vector<Port> ports) {
  return {.id = id, .pci = pci, .chip = Capability{8, 0}, .ports = std::move(ports)};
}

Link joined(const LinkEnd& a, const LinkEnd& b, bool apart = false) {
  Link link;
  fabric_link(a, b, apart, link);
  return link;
}

TEST(FabricLink, CountsThoseThatEndAtTheOther) {
  const Link link =
      joined(end("a", "0000:01:00.0", {to_gpu("0000:02:00.0"), to_gpu("0000:03:00.0"), to_gpu("0000:02:00.0")}),
             end("b", "0000:02:00.0", {to_gpu("0000:01:00.0"), to_gpu("0000:01:00.0")}));
  EXPECT_EQ(link.fabric.value(), Fabric::nvlink);
  EXPECT_EQ(link.fabric_links.value(), 2);
  EXPECT_EQ(link.fabric_version.value(), 3);
  EXPECT_FALSE(link.fabric_switched.value());
}

TEST(FabricLink, IsSeenFromEitherEnd) {
  const LinkEnd a = end("a", "0000:01:00.0", {to(Port::To::unnamed)});
  const LinkEnd b = end("b", "0000:02:00.0", {to_gpu("0000:01:00.0")});
  EXPECT_EQ(joined(a, b).fabric_links.value(), 1);
  EXPECT_EQ(joined(b, a).fabric_links.value(), 1);
}

TEST(FabricLink, SwitchesJoinAllWithTheLesserNumber) {
  const std::vector<Port> six(6, to(Port::To::fabric_switch)), five(5, to(Port::To::fabric_switch));
  const Link link = joined(end("a", "0000:01:00.0", six), end("b", "0000:02:00.0", five));
  EXPECT_EQ(link.fabric.value(), Fabric::nvlink);
  EXPECT_EQ(link.fabric_links.value(), 5);
  EXPECT_TRUE(link.fabric_switched.value());
}

TEST(FabricLink, SwitchesOfTwoIslandsJoinNothing) {
  const std::vector<Port> ports(6, to(Port::To::fabric_switch));
  const LinkEnd a = end("a", "0000:01:00.0", ports), b = end("b", "0000:02:00.0", ports);
  EXPECT_EQ(joined(a, b, true).fabric.value(), Fabric::none);
}

TEST(FabricLink, EndsThatAreNotNamedCountAsSwitches) {
  const std::vector<Port> ports(4, to(Port::To::unnamed));
  EXPECT_EQ(joined(end("a", "0000:01:00.0", ports), end("b", "0000:02:00.0", ports)).fabric_links.value(), 4);
}

TEST(FabricLink, IsNoneBetweenGpusThatAreJoinedToOthers) {
  EXPECT_EQ(joined(end("a", "0000:01:00.0", {to_gpu("0000:03:00.0")}), end("b", "0000:02:00.0", {})).fabric.value(),
            Fabric::none);
  EXPECT_EQ(
      joined(end("a", "0000:01:00.0", {to(Port::To::fabric_switch)}), end("b", "0000:02:00.0", {})).fabric.value(),
      Fabric::none);
  const LinkEnd mixed = end("a", "0000:01:00.0", {to(Port::To::fabric_switch), to(Port::To::other)});
  EXPECT_EQ(joined(mixed, end("b", "0000:02:00.0", {to(Port::To::fabric_switch)})).fabric.value(), Fabric::none);
}

TEST(FabricLink, IsNotKnownWhereBothHaveLinksThatLeadAnywhere) {
  const std::vector<Port> ports{to(Port::To::unnamed), to_gpu("0000:03:00.0")};
  EXPECT_FALSE(joined(end("a", "0000:01:00.0", ports), end("b", "0000:02:00.0", ports)).fabric.has_value());
}

class ReadLinks : public ::testing::Test {
 protected:
  void SetUp() override { fake::machine() = {.gpus = {fake::gpu(1), fake::gpu(2)}}; }
  fake::Gpu& gpu(size_t i) { return fake::machine().gpus[i]; }
  Handle handle(size_t i) { return reinterpret_cast<Handle>(&gpu(i)); }
  LinkEnd end(size_t i) {
    return {.id = gpu(i).uuid,
            .handle = handle(i),
            .pci = fmt_address(i),
            .ports = read_ports(lib_, handle(i), kGpus, files_)};
  }
  static std::string fmt_address(size_t i) { return i == 0 ? "0000:01:00.0" : "0000:02:00.0"; }

  Lib lib_ = fake::new_driver();
  KernelFiles files_{"/nowhere/proc", "/nowhere/sys"};
};

TEST_F(ReadLinks, TellHowNearAPairIsAndWhetherItMayTalk) {
  gpu(0).paths = {{1, 40}};
  gpu(0).peer_read = {{1, 0}};
  gpu(0).peer_write = {{1, 0}};
  const Link link = read_link(lib_, end(0), end(1));
  EXPECT_EQ(link.a, "GPU-aaaa-01");
  EXPECT_EQ(link.b, "GPU-aaaa-02");
  EXPECT_EQ(link.path.value(), Path::node);
  EXPECT_EQ(link.peer_access.value(), PeerAccess::ok);
  EXPECT_EQ(link.fabric.value(), Fabric::none);
  EXPECT_FALSE(link.fabric_links.was_read());
}

TEST_F(ReadLinks, TheWorseOfReadingAndWritingCounts) {
  gpu(0).paths = {{1, 30}};
  gpu(0).peer_read = {{1, 0}};
  gpu(0).peer_write = {{1, 2}};
  EXPECT_EQ(read_link(lib_, end(0), end(1)).peer_access.value(), PeerAccess::gpu);
  gpu(0).peer_read = {{1, 1}};
  gpu(0).peer_write = {{1, 0}};
  EXPECT_EQ(read_link(lib_, end(0), end(1)).peer_access.value(), PeerAccess::chipset);
}

TEST_F(ReadLinks, PortsAreThoseThatAreActive) {
  gpu(0).nvlinks = {{.type = kRemoteGpu, .pci = "0000:02:00.0"},
                    {.active = 0},
                    {.type = kRemoteSwitch, .pci = kSwitch},
                    {.type = kRemoteUnknown},
                    {.type = 1, .pci = "0000:09:00.0"}};
  const auto ports = read_ports(lib_, handle(0), kGpus, files_).value();
  ASSERT_EQ(ports.size(), 4);
  EXPECT_EQ(ports[0].to, Port::To::gpu);
  EXPECT_EQ(ports[0].pci, "0000:02:00.0");
  EXPECT_EQ(ports[0].version, 5);
  EXPECT_EQ(ports[1].to, Port::To::fabric_switch);
  EXPECT_EQ(ports[2].to, Port::To::unnamed);
  EXPECT_EQ(ports[3].to, Port::To::other);
}

TEST_F(ReadLinks, AnOldDriverNamesGpusByTheirAddressAlone) {
  lib_ = fake::old_driver();
  gpu(0).nvlinks = {{.pci = "0000:02:00.0"}};
  gpu(1).nvlinks = {{.pci = "0000:01:00.0"}};
  EXPECT_EQ(read_link(lib_, end(0), end(1)).fabric_links.value(), 1);
}

TEST_F(ReadLinks, AnOldDriversSwitchIsNamedByTheKernelOrNotAtAll) {
  lib_ = fake::old_driver();
  gpu(0).nvlinks = {{.pci = kSwitch}};
  EXPECT_EQ(read_ports(lib_, handle(0), kGpus, files_).value()[0].to, Port::To::unnamed);
  const ScratchFolder sysfs;
  const std::string place = std::string("bus/pci/devices/") + kSwitch;
  sysfs.write(place + "/class", "0x068000\n");
  EXPECT_EQ(read_ports(lib_, handle(0), kGpus, {.sys = sysfs.path()}).value()[0].to, Port::To::other);
  sysfs.write(place + "/vendor", "0x10de\n");
  EXPECT_EQ(read_ports(lib_, handle(0), kGpus, {.sys = sysfs.path()}).value()[0].to, Port::To::fabric_switch);
}

TEST_F(ReadLinks, ThePairsOfOtherIslandsAreToldByTheDriver) {
  gpu(0).nvlinks = gpu(1).nvlinks = {{.type = kRemoteSwitch, .pci = kSwitch}};
  gpu(0).peer_nvlink = {{1, 0}};
  EXPECT_EQ(read_link(lib_, end(0), end(1)).fabric.value(), Fabric::nvlink);
  gpu(0).peer_nvlink = {{1, 5}};
  EXPECT_EQ(read_link(lib_, end(0), end(1)).fabric.value(), Fabric::none);
}

TEST_F(ReadLinks, AGpuWithoutThemHasNone) { EXPECT_TRUE(read_ports(lib_, handle(0), kGpus, files_).value().empty()); }

TEST_F(ReadLinks, MissingOnesHaveAReason) {
  gpu(0).answers = kGpuIsLost;
  EXPECT_EQ(read_ports(lib_, handle(0), kGpus, files_).missing().reason, MissingReason::lost);
  EXPECT_EQ(read_ports({}, handle(0), kGpus, files_).missing().reason, MissingReason::unsupported);
  EXPECT_EQ(read_link(lib_, end(0), end(1)).fabric.missing().reason, MissingReason::lost);
}

TEST_F(ReadLinks, OfAGpuThatWasNotOpenedSayWhy) {
  LinkEnd lost{.id = "gpu:1", .ports = Missing{MissingReason::lost, "GPU 1 did not answer within 5 s"}};
  const Link link = read_link(lib_, end(0), lost);
  EXPECT_EQ(link.path.missing().detail, "GPU 1 did not answer within 5 s");
  EXPECT_EQ(link.peer_access.missing().reason, MissingReason::lost);
  EXPECT_EQ(link.fabric.missing().reason, MissingReason::lost);
}

}  // namespace
}  // namespace remuda::probe::nvml
