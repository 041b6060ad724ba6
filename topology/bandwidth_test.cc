#include "topology/bandwidth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "topology/testing/machines.h"

namespace remuda::topology {
namespace {

using testing::HasSubstr;

Device gpu(const char* id, int numa_node, int generation = 0, int width = 0) {
  Device device{.id = id, .kind = DeviceKind::gpu, .numa_node = numa_node};
  if (generation > 0) device.pcie_generation_max = generation;
  if (width > 0) device.status.pcie_width = width;
  return device;
}

Link path(Path path) { return {.a = "a", .b = "b", .path = path, .fabric = Fabric::none}; }

PairSpeed speed(const Device& a, const Device& b, const Link& link) {
  const auto found = pair_speed(a, b, &link, nullptr);
  EXPECT_TRUE(found);
  return found.value_or(PairSpeed{});
}

const Device kA = gpu("a", 0), kB = gpu("b", 0), kFar = gpu("b", 1);

TEST(PairSpeed, AMeasurementWins) {
  Inventory inventory = pairs();
  measure(inventory, "GPU-1", "GPU-0", 271.5);
  const auto found = pair_speed(inventory, inventory.devices[0], inventory.devices[1]);
  EXPECT_EQ(found, (PairSpeed{271.5, true, "271.5 GB/s (measured)"}));
  EXPECT_FALSE(pair_speed(inventory, inventory.devices[2], inventory.devices[3])->measured);
}

TEST(PairSpeed, AMeasurementThatCannotBeIsIgnored) {
  const Link link = path(Path::pix);
  for (const double odd :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const MeasuredLink measured{.a = "a", .b = "b", .gbps = odd};
    EXPECT_EQ(pair_speed(kA, kB, &link, &measured)->gbps, 24);
    EXPECT_FALSE(pair_speed(kA, kB, nullptr, &measured));
  }
}

TEST(PairSpeed, CountsNvlinks) {
  Link link{.a = "a", .b = "b", .fabric = Fabric::nvlink, .fabric_links = 12, .fabric_version = 3};
  EXPECT_EQ(speed(kA, kB, link), (PairSpeed{300, false, "12 NVLink links of generation 3, 25 GB/s each (assumed)"}));
  link.fabric_switched = true;
  EXPECT_EQ(speed(kA, kB, link).reason, "12 NVLink links of generation 3 to a switch, 25 GB/s each (assumed)");
  link.fabric_version = 5;
  EXPECT_EQ(speed(kA, kB, link).gbps, 600);
  link.fabric_links = 1, link.fabric_version = 1, link.fabric_switched = false;
  EXPECT_EQ(speed(kA, kB, link), (PairSpeed{20, false, "1 NVLink link of generation 1, 20 GB/s each (assumed)"}));
}

TEST(PairSpeed, ASlowerEndSetsTheSpeedOfALink) {
  Device a = kA, b = kB;
  a.architecture = "gfx90a", b.architecture = "gfx908";
  const Link link{.a = "a", .b = "b", .fabric = Fabric::xgmi, .fabric_links = 2};
  EXPECT_EQ(speed(a, b, link), (PairSpeed{92, false, "2 xGMI links, 46 GB/s each (assumed)"}));
  a.architecture = "ampere", a.compute_capability = "8.6";
  EXPECT_EQ(speed(a, kB, {.a = "a", .b = "b", .fabric = Fabric::nvlink, .fabric_links = 4}).gbps, 56.25);
}

TEST(PairSpeed, TakesTheDriversFigureWhereLinksAreNotCounted) {
  Link link{.a = "a", .b = "b", .fabric = Fabric::xgmi, .max_gbps = 50.0};
  EXPECT_EQ(speed(kA, kB, link), (PairSpeed{50, false, "xGMI at the driver's figure of 50 GB/s (assumed)"}));
  link.fabric_links = 2;
  EXPECT_EQ(speed(kA, kB, link).gbps, 50);
  EXPECT_THAT(speed(kA, kB, link).reason, HasSubstr("2 xGMI links"));
  link.fabric_links = Missing{}, link.max_gbps = -3.0;
  EXPECT_EQ(speed(kA, kB, link),
            (PairSpeed{25, false, "xGMI links of unknown number, counted as one of 25 GB/s (assumed)"}));
}

TEST(PairSpeed, FollowsThePcieClass) {
  EXPECT_EQ(speed(kA, kB, path(Path::pix)),
            (PairSpeed{24, false, "PIX over PCIe, taken for generation 4 x16 (assumed)"}));
  EXPECT_EQ(speed(kA, kB, path(Path::psb)).gbps, 24);
  EXPECT_EQ(speed(kA, kB, path(Path::pxb)).gbps, 22);
  EXPECT_EQ(speed(kA, kB, path(Path::phb)).gbps, 18);
  EXPECT_EQ(speed(kA, kB, path(Path::node)).gbps, 16);
  EXPECT_EQ(speed(kA, kFar, path(Path::sys)).gbps, 10);
  EXPECT_EQ(speed(kA, kB, path(Path::sys)),
            (PairSpeed{14, false, "SYS over PCIe within one NUMA node, taken for generation 4 x16 (assumed)"}));
  EXPECT_EQ(speed(kA, kB, path(Path::pcie)).gbps, 16);
  EXPECT_EQ(speed(kA, kFar, path(Path::pcie)),
            (PairSpeed{10, false, "PCIe of unknown class, taken for generation 4 x16 (assumed)"}));
}

TEST(PairSpeed, NearnessIsNumaNodeOrCpus) {
  Device a{.id = "a"}, b{.id = "b"};
  EXPECT_FALSE(are_near(a, b));
  a.cores = b.cores = std::vector<int>{};
  EXPECT_FALSE(are_near(a, b)) << "an empty list says nothing";
  a.cores = b.cores = std::vector{0, 1};
  EXPECT_TRUE(are_near(a, b));
  EXPECT_FALSE(are_near(kA, kFar));
}

TEST(PairSpeed, ScalesToTheLanesOfTheSlowerEnd) {
  const Device x16 = gpu("a", 0, 4, 16), x8 = gpu("b", 0, 4, 8), old = gpu("b", 0, 3, 16);
  EXPECT_EQ(speed(x16, x8, path(Path::phb)), (PairSpeed{9, false, "PHB over PCIe, generation 4 x8 (assumed)"}));
  EXPECT_EQ(speed(x16, old, path(Path::pix)).gbps, 12);
  EXPECT_EQ(speed(old, x8, path(Path::pix)).gbps, 12);
  EXPECT_EQ(speed(x8, kB, path(Path::pix)).gbps, 12) << "what is known of one end holds";
}

TEST(PairSpeed, NewerLanesHelpBelowTheHostOnly) {
  const Device a = gpu("a", 0, 5, 16), b = gpu("b", 0, 5, 16);
  EXPECT_EQ(speed(a, b, path(Path::pix)).gbps, 48);
  EXPECT_EQ(speed(a, b, path(Path::pxb)).gbps, 44);
  EXPECT_EQ(speed(a, b, path(Path::phb)),
            (PairSpeed{18, false,
                       "PHB over PCIe, generation 5 x16, no faster than generation 4 x16 through the host (assumed)"}));
}

TEST(PairSpeed, LanesThatCannotBeAreNotBelieved) {
  for (const auto& [generation, width] : {std::pair{400, 16}, {4, 1000000}, {-4, 16}, {4, -1}})
    EXPECT_EQ(speed(gpu("a", 0, generation, width), kB, path(Path::pix)).gbps, 24);
}

TEST(PairSpeed, TheDriversFigureLimitsPcie) {
  Link link = path(Path::pcie);
  link.max_gbps = 8.0;
  EXPECT_EQ(speed(kA, kB, link),
            (PairSpeed{8, false, "PCIe within one NUMA node at the driver's figure of 8 GB/s (assumed)"}));
  link.max_gbps = 32.0;
  EXPECT_EQ(speed(kA, kB, link).gbps, 16);
}

TEST(PairSpeed, WithoutPeerAccessGoesThroughHostMemory) {
  Link link = path(Path::phb);
  link.peer_access = PeerAccess::gpu;
  EXPECT_EQ(speed(kA, kB, link),
            (PairSpeed{9, false,
                       "no peer access (gpu_not_supported), so through host memory at half speed: PHB over PCIe, taken "
                       "for generation 4 x16 (assumed)"}));
  link.path = Path::pix;
  EXPECT_EQ(speed(kA, kB, link).gbps, 9) << "host memory is no nearer than the host bridge";
  link.path = Path::sys;
  EXPECT_EQ(speed(kA, kFar, link).gbps, 5);
  link.peer_access = PeerAccess::ok;
  EXPECT_EQ(speed(kA, kFar, link).gbps, 10);
  link.peer_access = PeerAccess::unknown;
  EXPECT_EQ(speed(kA, kFar, link).gbps, 10);
}

TEST(PairSpeed, IsMissingWhereNothingIsKnown) {
  EXPECT_FALSE(pair_speed(kA, kB, nullptr, nullptr));
  const Link unread{.a = "a", .b = "b"};
  EXPECT_FALSE(pair_speed(kA, kB, &unread, nullptr));
}

TEST(PairSpeed, PartitionsHaveNoLinks) {
  const Link link = path(Path::pix);
  Device cut = kA, part = kA;
  cut.partitioned = true, part.kind = DeviceKind::partition;
  EXPECT_FALSE(pair_speed(cut, kB, &link, nullptr));
  EXPECT_FALSE(pair_speed(kB, part, &link, nullptr));
}

TEST(PairSpeed, CpuDevicesShareMemory) {
  const Inventory inventory = two_sockets();
  const Device &a = inventory.devices[0], &b = inventory.devices[1];
  EXPECT_EQ(pair_speed(inventory, a, b), (PairSpeed{4, false, "shared memory of two NUMA nodes (assumed)"}));
  const Device twin{.id = "cpu:2", .numa_node = 0}, lost{.id = "cpu:3"};
  EXPECT_EQ(pair_speed(a, twin, nullptr, nullptr), (PairSpeed{6, false, "shared memory of one NUMA node (assumed)"}));
  EXPECT_EQ(pair_speed(a, lost, nullptr, nullptr), (PairSpeed{4, false, "shared memory (assumed)"}));
}

}  // namespace
}  // namespace remuda::topology
