#include "probe/amd/probe.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <map>

#include "probe/testing/tree.h"

namespace remuda::probe {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kFirstGpu = 2;  // after two CPU nodes
constexpr int kFirstBus = 0x63;
constexpr const char* kNodes = "class/kfd/kfd/topology/nodes/";

class AmdProbeTest : public ::testing::Test {
 protected:
  Finding find() {
    const auto probe = make_amd_probe({sysfs_.path(), proc_.path()});
    EXPECT_EQ(probe->unviable(), std::nullopt);
    auto finding = probe->find();
    EXPECT_TRUE(finding) << finding.error().message;
    return finding.value_or(Finding{});
  }

  std::string node(int number, const std::string& file) { return fmt::format("{}{}/{}", kNodes, number, file); }

  void cpus() {
    for (const int i : {0, 1}) sysfs_.write(node(i, "properties"), "cpu_cores_count 64\nsimd_count 0\n");
  }

  void gpu(int number, int location, uint64_t unique_id, int minor) {
    sysfs_.write(node(number, "properties"),
                 fmt::format("cpu_cores_count 0\nsimd_count 416\nsimd_per_cu 4\ngfx_target_version 90010\n"
                             "vendor_id 4098\nlocation_id {}\ndomain 0\ndrm_render_minor {}\nunique_id {}\n",
                             location, minor, unique_id));
    sysfs_.write(node(number, "gpu_id"), fmt::format("{}\n", 1000 + number));
  }

  void link(int from, const char* kind, int to, int type, int weight, int bandwidth = 0) {
    const int count = links_[{from, kind}]++;
    sysfs_.write(node(from, fmt::format("{}/{}/properties", kind, count)),
                 fmt::format("type {}\nnode_from {}\nnode_to {}\nweight {}\nmin_bandwidth {}\nmax_bandwidth {}\n", type,
                             from, to, weight, bandwidth, bandwidth));
  }

  /// Eight MI210 in two hives of four, one hive at each CPU, as recorded from a driver.
  void two_hives() {
    cpus();
    for (int i = 0; i < 8; ++i) {
      const int number = kFirstGpu + i;
      gpu(number, (kFirstBus + i) << 8, 0x1901eb4efa6cbca0 + i, 128 + i);
      sysfs_.pci(
          fmt::format("pci0000:60/0000:{:02x}:00.0", kFirstBus + i),
          {{"numa_node", "-1"}, {"mem_info_vram_total", "68702699520"}, {"gpu_busy_percent", fmt::format("{}", i)}},
          "amdgpu");
      link(number, "io_links", i / 4, 2, 20, 32000);
      for (int k = 0; k < 8; ++k) {
        if (k == i) continue;
        if (k / 4 == i / 4)
          link(number, "io_links", kFirstGpu + k, 11, 15, 50000);
        else
          link(number, "p2p_links", kFirstGpu + k, 2, 72);
      }
    }
  }

  MadeTree sysfs_, proc_;
  std::map<std::pair<int, std::string>, int> links_;
};

TEST_F(AmdProbeTest, SaysWhyItIsNotViable) {
  const auto probe = make_amd_probe({sysfs_.path(), proc_.path()});
  EXPECT_STREQ(probe->name(), "amd");
  EXPECT_THAT(probe->unviable().value_or(""), HasSubstr("the amdgpu driver is not loaded ("));
  sysfs_.make_folder("module/amdgpu");
  EXPECT_THAT(probe->unviable().value_or(""), HasSubstr("the amdgpu driver shows no compute devices ("));
  EXPECT_THAT(probe->find()->devices, IsEmpty());
}

TEST_F(AmdProbeTest, SeesTwoHives) {
  two_hives();
  const Finding finding = find();
  EXPECT_EQ(finding.reason, "");
  ASSERT_THAT(finding.devices, SizeIs(8));
  const Device& fifth = finding.devices[4];
  EXPECT_EQ(fifth.id, "0000:67:00.0");
  EXPECT_EQ(fifth.vendor, "AMD");
  EXPECT_EQ(fifth.uuid.value(), "GPU-1901eb4efa6cbca4");
  EXPECT_EQ(fifth.architecture.value(), "gfx90a");
  EXPECT_EQ(fifth.multiprocessors.value(), 104);
  EXPECT_EQ(fifth.minor.value(), 132);
  EXPECT_EQ(fifth.numa_node.value(), 1);
  EXPECT_EQ(fifth.memory_bytes.value(), 68702699520);
  EXPECT_DOUBLE_EQ(fifth.status.busy.value(), 0.04);
  EXPECT_EQ(fifth.partitioned.value(), false);
  EXPECT_FALSE(fifth.status.pcie_width.was_read());
}

TEST_F(AmdProbeTest, GivesTheHivesMatrix) {
  two_hives();
  const Finding finding = find();
  ASSERT_THAT(finding.links, SizeIs(8 * 7 / 2));
  for (const Link& link : finding.links) {
    const auto hive = [](const std::string& id) { return (std::stoi(id.substr(5, 2), nullptr, 16) - kFirstBus) / 4; };
    const bool inside = hive(link.a) == hive(link.b);
    EXPECT_EQ(link.fabric.value(), inside ? Fabric::xgmi : Fabric::none) << link.a << " " << link.b;
    EXPECT_EQ(link.weight.value(), inside ? 15 : 72) << link.a << " " << link.b;
    EXPECT_EQ(link.max_gbps.value_or(0), inside ? 50 : 0) << link.a << " " << link.b;
  }
}

TEST_F(AmdProbeTest, MakesDevicesOfPartitions) {
  cpus();
  constexpr int kParts = 8;
  for (int card = 0; card < 2; ++card)
    for (int part = 0; part < kParts; ++part) {
      const int number = kFirstGpu + card * kParts + part;
      gpu(number, ((5 + card) << 8) + part, 77 + card, 128 + number);
      sysfs_.write(node(number, "mem_banks/0/properties"), "heap_type 1\nsize_in_bytes 24000000000\n");
      sysfs_.write(node(number, "mem_banks/0/used_memory"), "5000\n");
    }
  link(2, "io_links", 3, 11, 13, 819200);
  link(2, "io_links", 10, 11, 41);
  for (const char* bus : {"05", "06"})
    sysfs_.pci(fmt::format("pci0000:00/0000:{}:00.0", bus),
               {{"numa_node", "1"}, {"current_compute_partition", "CPX"}, {"product_name", "AMD Instinct MI300X"}},
               "amdgpu");
  sysfs_.write("class/kfd/kfd/proc/321/vram_1003", "4096");
  const Finding finding = find();
  ASSERT_THAT(finding.devices, SizeIs(2 + 2 * kParts));
  const Device &gpu = finding.devices[0], &part = finding.devices[3];
  EXPECT_EQ(gpu.kind, DeviceKind::gpu);
  EXPECT_EQ(gpu.partitioned.value(), true);
  EXPECT_EQ(gpu.multiprocessors.value(), 104 * kParts);
  EXPECT_EQ(gpu.memory_bytes.value(), 24000000000 * kParts);
  EXPECT_EQ(gpu.uuid.value(), "GPU-000000000000004d");
  EXPECT_EQ(part.kind, DeviceKind::partition);
  EXPECT_EQ(part.id, "kfd:3");
  EXPECT_EQ(part.parent, gpu.id);
  EXPECT_EQ(part.profile.value(), "CPX");
  EXPECT_EQ(part.model, "AMD Instinct MI300X");
  EXPECT_EQ(part.pci.value(), "0000:05:00.0");
  EXPECT_EQ(part.numa_node.value(), 1);
  EXPECT_EQ(part.memory_bytes.value(), 24000000000);
  EXPECT_EQ(part.status.memory_used_bytes.value(), 5000);
  EXPECT_EQ(part.status.busy.missing().detail, "the driver reports this of the whole GPU only");
  EXPECT_EQ(part.uuid.missing().detail, "another device has the same, GPU-000000000000004d");
  ASSERT_THAT(part.status.processes.value(), SizeIs(1));
  EXPECT_EQ(part.status.processes.value()[0].pid, 321);
  EXPECT_THAT(finding.devices[2].status.processes.value(), IsEmpty());
  EXPECT_THAT(gpu.status.processes.value(), SizeIs(1));
  ASSERT_THAT(finding.links, SizeIs(2));
  EXPECT_EQ(finding.links[0].a, "kfd:2");
  EXPECT_EQ(finding.links[0].path.value(), Path::psb);
  EXPECT_EQ(finding.links[1].weight.value(), 41);
}

TEST_F(AmdProbeTest, SeesOnePartitionAloneInAContainer) {
  gpu(2, 0x500, 77, 128);
  sysfs_.pci("pci0000:00/0000:05:00.0", {{"current_compute_partition", "DPX"}}, "amdgpu");
  const Finding finding = find();
  ASSERT_THAT(finding.devices, SizeIs(2));
  EXPECT_EQ(finding.devices[1].kind, DeviceKind::partition);
  EXPECT_EQ(finding.devices[1].model, "AMD gfx90a");
}

TEST_F(AmdProbeTest, KeepsAGpuThatFellOffTheBus) {
  two_hives();
  sysfs_.remove("devices/pci0000:60/0000:64:00.0");
  const Finding finding = find();
  ASSERT_THAT(finding.devices, SizeIs(8));
  const Device& gone = finding.devices[1];
  const Missing why{MissingReason::lost, "0000:64:00.0 is no longer on the PCI bus"};
  EXPECT_EQ(gone.status.busy.missing(), why);
  EXPECT_EQ(gone.serial.missing(), why);
  EXPECT_EQ(gone.uuid.value(), "GPU-1901eb4efa6cbca1");
  EXPECT_TRUE(finding.devices[2].status.busy.has_value());
}

TEST_F(AmdProbeTest, SaysWhatADriverKeepsToItself) {
  sysfs_.write(node(0, "properties"), "simd_count 416\n");
  sysfs_.make_folder(node(1, "properties"));
  const Finding finding = find();
  EXPECT_THAT(finding.reason, HasSubstr("1 of the driver's 2 nodes cannot be read"));
  ASSERT_THAT(finding.devices, SizeIs(1));
  const Device& gpu = finding.devices[0];
  EXPECT_EQ(gpu.id, "kfd:0");
  EXPECT_EQ(gpu.pci.missing().detail, "the driver reports no PCI address of kfd:0");
  EXPECT_EQ(gpu.uuid.missing().detail, "the driver reports no unique id of this GPU");
  EXPECT_THAT(gpu.status.processes.missing().detail, HasSubstr("reports no gpu_id"));
  EXPECT_THAT(gpu.minor.missing().detail, HasSubstr("drm_render_minor"));
}

TEST_F(AmdProbeTest, PrefersTheGpusOwnUniqueId) {
  gpu(2, 0x500, 77, 128);
  gpu(3, 0x500 + (1 << 28), 78, 129);
  sysfs_.pci("pci0000:00/0000:05:00.0", {{"unique_id", "00000000000000ab"}}, "amdgpu");
  const Finding finding = find();
  ASSERT_THAT(finding.devices, SizeIs(3));
  EXPECT_EQ(finding.devices[0].uuid.value(), "GPU-00000000000000ab");
  EXPECT_EQ(finding.devices[1].uuid.value(), "GPU-000000000000004d");
  EXPECT_EQ(finding.devices[2].uuid.value(), "GPU-000000000000004e");
}

TEST_F(AmdProbeTest, NamesTheDriversVersion) {
  cpus();
  proc_.write("sys/kernel/osrelease", "6.1.0-18-amd64\n");
  EXPECT_EQ(find().drivers.at(0).version.value(), "6.1.0-18-amd64");
  sysfs_.write("module/amdgpu/version", "6.7.0\n");
  EXPECT_EQ(find().drivers.at(0).module_version.value(), "6.7.0");
  EXPECT_EQ(find().drivers.at(0).vendor, "AMD");
}

TEST_F(AmdProbeTest, SurvivesGarbage) {
  for (const std::string& garbage :
       {std::string("\xff\x00 simd_count", 13), std::string("simd_count 5\nlocation_id 99999999999\nunique_id x"),
        std::string("simd_count 1\nlocation_id 4294967295\ndomain 4294967295")}) {
    sysfs_.write(node(0, "properties"), garbage);
    sysfs_.write(node(0, "io_links/0/properties"), "node_to 18446744073709551615\nweight 99999999999\n");
    sysfs_.write(node(0, "io_links/1/properties"), "node_to 0\n");
    sysfs_.make_folder(node(0, "gpu_id"));
    const Finding finding = find();
    EXPECT_LE(finding.devices.size(), 1u);
    EXPECT_THAT(finding.links, IsEmpty());
  }
}

}  // namespace
}  // namespace remuda::probe
