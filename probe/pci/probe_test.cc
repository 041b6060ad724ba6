#include "probe/pci/probe.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <map>

#include "probe/testing/tree.h"

namespace remuda::probe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Files = std::map<std::string, std::string>;

/// The files of a GPU in a slot; `more` are added.
Files gpu_files(const std::string& vendor, const std::string& device, const std::string& numa_node, Files more = {}) {
  Files files{{"class", "0x030200"},
              {"vendor", "0x" + vendor},
              {"device", "0x" + device},
              {"numa_node", numa_node},
              {"local_cpulist", "0-3,8-11"},
              {"max_link_speed", "16.0 GT/s PCIe"},
              {"current_link_speed", "2.5 GT/s PCIe"},
              {"max_link_width", "16"},
              {"current_link_width", "8"}};
  for (const auto& [name, text] : more) files[name] = text;
  return files;
}
Files nvidia(const std::string& numa_node = "0", Files more = {}) {
  return gpu_files("10de", "2230", numa_node, std::move(more));
}

class PciProbeTest : public ::testing::Test {
 protected:
  Finding find() {
    const auto probe = make_pci_probe({tree_.path(), {tree_.path("pci.ids")}});
    EXPECT_EQ(probe->unviable(), std::nullopt);
    auto finding = probe->find();
    EXPECT_TRUE(finding) << finding.error().message;
    return finding.value_or(Finding{});
  }
  Device only_gpu() {
    const Finding finding = find();
    EXPECT_THAT(finding.devices, SizeIs(1));
    return finding.devices.empty() ? Device{} : finding.devices.front();
  }
  void numa_nodes(int count) {
    for (int i = 0; i < count; ++i) tree_.make_folder(fmt::format("devices/system/node/node{}", i));
  }

  MadeTree tree_;
};

std::string path_of(const Finding& finding, const std::string& a, const std::string& b) {
  for (const Link& link : finding.links)
    if ((link.a == a && link.b == b) || (link.a == b && link.b == a)) return to_string(link.path.value());
  return "none";
}

TEST_F(PciProbeTest, IsNotViableWithoutABus) {
  const auto probe = make_pci_probe({tree_.path(), {}});
  EXPECT_STREQ(probe->name(), "pci");
  EXPECT_THAT(probe->unviable().value_or(""), HasSubstr("this machine shows no PCI bus"));
}

TEST_F(PciProbeTest, ShowsAGpuWithoutDriver) {
  tree_.pci("pci0000:20/0000:20:01.1/0000:27:00.0", nvidia("1"));
  const Device gpu = only_gpu();
  EXPECT_EQ(gpu.id, "0000:27:00.0");
  EXPECT_EQ(gpu.kind, DeviceKind::gpu);
  EXPECT_EQ(gpu.vendor, "NVIDIA");
  EXPECT_EQ(gpu.model, "NVIDIA GPU 10de:2230");
  EXPECT_EQ(gpu.pci.value(), "0000:27:00.0");
  EXPECT_EQ(gpu.pcie_root.value(), "pci0000:20");
  EXPECT_EQ(gpu.numa_node.value(), 1);
  EXPECT_THAT(gpu.cores.value(), ElementsAre(0, 1, 2, 3, 8, 9, 10, 11));
  const Missing why{MissingReason::no_driver, "no driver is bound to it"};
  EXPECT_EQ(gpu.uuid.missing(), why);
  EXPECT_EQ(gpu.memory_bytes.missing(), why);
  EXPECT_EQ(gpu.status.busy.missing(), why);
  EXPECT_EQ(gpu.status.processes.missing(), why);
  EXPECT_FALSE(gpu.profile.was_read());
}

TEST_F(PciProbeTest, LeavesAVendorDriversReadingsToItsProbe) {
  tree_.pci("pci0000:20/0000:20:01.1/0000:27:00.0", nvidia(), "nvidia");
  const Device gpu = only_gpu();
  EXPECT_FALSE(gpu.uuid.was_read());
  EXPECT_FALSE(gpu.status.busy.was_read());
  EXPECT_EQ(gpu.status.pcie_width.value(), 8);
}

TEST_F(PciProbeTest, NamesADriverThatTellsNothing) {
  tree_.pci("pci0000:00/0000:00:01.0/0000:01:00.0", nvidia(), "nouveau");
  tree_.pci("pci0000:00/0000:00:03.0/0000:02:00.0", nvidia(), "vfio-pci");
  tree_.pci("pci0000:00/0000:00:02.0", gpu_files("8086", "56c0", "0", {{"class", "0x038000"}}), "i915");
  const Finding finding = find();
  ASSERT_THAT(finding.devices, SizeIs(3));
  EXPECT_EQ(finding.devices[0].vendor, "Intel");
  EXPECT_EQ(finding.devices[0].status.busy.missing().detail,
            "the i915 driver is bound, which reports nothing of its use");
  EXPECT_EQ(finding.devices[1].uuid.missing().detail, "the nouveau driver is bound, which reports nothing of its use");
  EXPECT_EQ(finding.devices[2].uuid.missing(),
            (Missing{MissingReason::no_driver, "handed to a virtual machine (vfio-pci)"}));
}

TEST_F(PciProbeTest, TakesNoOtherDisplayForAGpu) {
  const auto display = [](const char* vendor, const char* device) {
    return Files{{"class", "0x030000"}, {"vendor", vendor}, {"device", device}, {"numa_node", "0"}};
  };
  tree_.pci("pci0000:00/0000:00:01.0", display("0x1a03", "0x2000"));
  tree_.pci("pci0000:00/0000:00:02.0", display("0x102b", "0x0522"));
  tree_.pci("pci0000:00/0000:00:03.0", display("0x1af4", "0x1050"));
  tree_.pci("pci0000:00/0000:00:04.0", display("0x1002", "0x515e"));
  tree_.pci("pci0000:00/0000:00:05.0", {{"class", "0x040300"}, {"vendor", "0x10de"}, {"device", "0x1aef"}});
  tree_.pci("pci0000:00/0000:00:06.0", nvidia());
  tree_.make_folder("devices/pci0000:00/0000:00:06.0/physfn");
  EXPECT_THAT(find().devices, IsEmpty());
  tree_.pci("pci0000:00/0000:00:07.0", gpu_files("1002", "74a1", "0", {{"class", "0x120000"}}));
  EXPECT_EQ(only_gpu().vendor, "AMD");
}

TEST_F(PciProbeTest, NamesModelsByTheList) {
  tree_.write("pci.ids", "10de  NVIDIA Corporation\n\t2230  GA102GL [RTX A6000]\n");
  tree_.pci("pci0000:00/0000:00:01.0/0000:01:00.0", nvidia());
  tree_.pci("pci0000:00/0000:00:02.0/0000:02:00.0", nvidia("0", {{"device", "0x9999"}}));
  const Finding finding = find();
  ASSERT_THAT(finding.devices, SizeIs(2));
  EXPECT_EQ(finding.devices[0].model, "NVIDIA RTX A6000");
  EXPECT_EQ(finding.devices[1].model, "NVIDIA GPU 10de:9999");
}

TEST_F(PciProbeTest, ReadsThePcieLinkOfCardAndSlot) {
  tree_.pci("pci0000:00/0000:00:01.0",
            {{"class", "0x060400"}, {"max_link_speed", "8.0 GT/s PCIe"}, {"max_link_width", "8"}});
  tree_.pci("pci0000:00/0000:00:01.0/0000:01:00.0", nvidia());
  const Device gpu = only_gpu();
  EXPECT_EQ(gpu.pcie_generation_card.value(), 4);
  EXPECT_EQ(gpu.pcie_generation_max.value(), 3);
  EXPECT_EQ(gpu.pcie_width_max.value(), 8);
  EXPECT_EQ(gpu.status.pcie_generation.value(), 1);
  EXPECT_EQ(gpu.status.pcie_width.value(), 8);
}

TEST_F(PciProbeTest, KnowsNoPcieLinkWhereTheKernelDoesNot) {
  tree_.pci("pci0000:00/0000:00:02.0", nvidia("-1", {{"max_link_speed", "Unknown"},
                                                     {"current_link_speed", "16.05 GT/s"},
                                                     {"max_link_width", "255"},
                                                     {"current_link_width", "0"},
                                                     {"local_cpulist", "all"}}));
  const Device gpu = only_gpu();
  EXPECT_THAT(gpu.pcie_generation_max.missing().detail, HasSubstr("max_link_speed holds no PCIe speed"));
  EXPECT_FALSE(gpu.status.pcie_generation.has_value());
  EXPECT_THAT(gpu.pcie_width_max.missing().detail, HasSubstr("max_link_width holds 255, which cannot be"));
  EXPECT_FALSE(gpu.status.pcie_width.has_value());
  EXPECT_THAT(gpu.cores.missing().detail, HasSubstr("local_cpulist holds no list such as 0-3,8"));
  EXPECT_EQ(gpu.numa_node.missing().detail, "the firmware does not report the NUMA node of 0000:00:02.0");
}

TEST_F(PciProbeTest, TakesACardsOwnSwitchAsPartOfTheCard) {
  const Files own{{"vendor", "0x1002"},
                  {"class", "0x060400"},
                  {"max_link_speed", "16.0 GT/s PCIe"},
                  {"current_link_speed", "8.0 GT/s PCIe"},
                  {"max_link_width", "16"},
                  {"current_link_width", "4"}};
  const Files port{{"vendor", "0x10b5"}, {"class", "0x060400"}};
  const std::string one = "pci0000:20/0000:20:01.1/0000:21:00.0/";
  for (const char* card : {"0000:22:00.0/0000:23:00.0/0000:24:00.0", "0000:22:01.0/0000:33:00.0/0000:34:00.0"}) {
    const std::string chain = one + card;
    tree_.pci(chain.substr(0, one.size() + 12), port);
    tree_.pci(chain.substr(0, one.size() + 25), own);
    tree_.pci(chain, own);
    const std::string bus = chain.substr(chain.size() - 7, 1);
    tree_.pci(fmt::format("{}/0000:{}5:00.0", chain, bus), gpu_files("1002", "740f", "0"), "amdgpu");
  }
  const Finding finding = find();
  ASSERT_THAT(finding.devices, SizeIs(2));
  EXPECT_EQ(finding.devices[0].status.pcie_generation.value(), 3);
  EXPECT_EQ(finding.devices[0].status.pcie_width.value(), 4);
  EXPECT_EQ(path_of(finding, "0000:25:00.0", "0000:35:00.0"), "PIX");
}

TEST_F(PciProbeTest, TellsHowNearUnlikeGpusAndCardsAre) {
  numa_nodes(2);
  const std::string one = "pci0000:20/0000:20:01.1/0000:21:00.0/";
  tree_.pci(one + "0000:22:00.0/0000:23:00.0", nvidia());
  tree_.pci(one + "0000:22:01.0/0000:24:00.0", gpu_files("1002", "740f", "0"));
  tree_.pci(one + "0000:22:02.0/0000:25:00.0/0000:26:00.0/0000:27:00.0", nvidia());
  tree_.pci("pci0000:20/0000:20:03.1/0000:30:00.0", nvidia());
  tree_.pci("pci0000:40/0000:40:03.1/0000:41:00.0", nvidia());
  tree_.pci("pci0000:80/0000:80:03.1/0000:81:00.0", nvidia("1"));
  tree_.pci("pci0000:c0/0000:c0:03.1/0000:c1:00.0", nvidia("-1"));
  tree_.pci(one + "0000:22:03.0/0000:28:00.0", {{"class", "0x020700"}, {"numa_node", "0"}});
  tree_.link("class/infiniband/mlx5_0/device", tree_.path("bus/pci/devices/0000:28:00.0"));
  const Finding finding = find();
  EXPECT_THAT(finding.devices, SizeIs(7));
  EXPECT_THAT(finding.links, SizeIs(7 * 6 / 2 + 7));
  const auto near = [&](const char* other) { return path_of(finding, "0000:23:00.0", other); };
  EXPECT_EQ(near("0000:24:00.0"), "PIX");
  EXPECT_EQ(near("0000:27:00.0"), "PXB");
  EXPECT_EQ(near("0000:30:00.0"), "PHB");
  EXPECT_EQ(near("0000:41:00.0"), "NODE");
  EXPECT_EQ(near("0000:81:00.0"), "SYS");
  EXPECT_EQ(near("0000:c1:00.0"), "PCIE");
  EXPECT_EQ(near("mlx5_0"), "PIX");
  EXPECT_EQ(path_of(finding, "mlx5_0", "0000:81:00.0"), "SYS");
}

TEST_F(PciProbeTest, ListsEachNetworkCardOnce) {
  tree_.pci("pci0000:00/0000:00:03.0", {{"class", "0x020000"}, {"numa_node", "0"}});
  tree_.pci("pci0000:00/0000:00:04.0", {{"class", "0x020000"}, {"numa_node", "1"}});
  tree_.pci("pci0000:00/0000:00:05.0", {{"class", "0x0c0330"}});
  tree_.pci("pci0000:00/0000:00:06.0", {{"class", "0x020000"}});
  tree_.make_folder("devices/pci0000:00/0000:00:03.0/virtio2");
  tree_.make_folder("devices/pci0000:00/0000:00:05.0/usb1/1-2:1.0");
  tree_.make_folder("devices/pci0000:00/0000:00:06.0/physfn");
  tree_.link("class/net/eth0/device", tree_.path("devices/pci0000:00/0000:00:03.0/virtio2"));
  tree_.link("class/net/ens4/device", tree_.path("devices/pci0000:00/0000:00:04.0"));
  tree_.link("class/net/ens4d1/device", tree_.path("devices/pci0000:00/0000:00:04.0"));
  tree_.link("class/net/usb0/device", tree_.path("devices/pci0000:00/0000:00:05.0/usb1/1-2:1.0"));
  tree_.link("class/net/vf0/device", tree_.path("devices/pci0000:00/0000:00:06.0"));
  tree_.link("class/net/broken/device", tree_.path("devices/gone"));
  tree_.make_folder("class/net/lo");
  tree_.link("class/infiniband/mlx4_0/device", tree_.path("devices/pci0000:00/0000:00:04.0"));
  const Finding finding = find();
  ASSERT_THAT(finding.nics, SizeIs(2));
  EXPECT_EQ(finding.nics[0], (Nic{"mlx4_0", std::string("0000:00:04.0"), 1}));
  EXPECT_EQ(finding.nics[1], (Nic{"eth0", std::string("0000:00:03.0"), 0}));
}

TEST_F(PciProbeTest, ReadsNumaNodes) {
  tree_.make_folder("bus/pci/devices");
  tree_.write("devices/system/node/node0/cpulist", "0-1\n");
  tree_.write("devices/system/node/node0/meminfo", "Node 0 MemTotal:       2048 kB\nNode 0 MemFree: 1 kB\n");
  tree_.write("devices/system/node/node0/distance", "10 32\n");
  tree_.write("devices/system/node/node2/cpulist", "\n");
  tree_.write("devices/system/node/node2/meminfo", "Node 2 MemTotal: many kB\n");
  tree_.write("devices/system/node/node2/distance", "32 near\n");
  tree_.make_folder("devices/system/node/node10");
  const std::vector<NumaNode> nodes = find().numa;
  ASSERT_THAT(nodes, SizeIs(3));
  EXPECT_EQ(nodes[0], (NumaNode{0, std::vector{0, 1}, 2048 * 1024, std::vector{10, 32}}));
  EXPECT_EQ(nodes[1].node, 2);
  EXPECT_THAT(nodes[1].cores.value(), IsEmpty());
  EXPECT_THAT(nodes[1].memory_bytes.missing().detail, HasSubstr("meminfo holds no total"));
  EXPECT_THAT(nodes[1].distances.missing().detail, HasSubstr("distance holds no distances"));
  EXPECT_EQ(nodes[2].node, 10);
  EXPECT_THAT(nodes[2].cores.missing().detail, HasSubstr("there is no "));
}

TEST_F(PciProbeTest, SurvivesFilesThatAreGarbage) {
  const std::string huge(100'000, '9');
  for (const std::string& garbage : {std::string(), std::string("0x"), std::string("\x1b[31m\xff"), huge}) {
    for (const char* file : {"numa_node", "local_cpulist", "max_link_speed", "max_link_width", "current_link_width"}) {
      const MadeTree tree;
      tree.pci("pci0000:00/0000:00:02.0", nvidia("0", {{file, garbage}}));
      const auto finding = make_pci_probe({tree.path(), {}})->find();
      ASSERT_TRUE(finding && finding->devices.size() == 1) << file;
    }
    for (const char* file : {"class", "vendor", "device"}) {
      const MadeTree tree;
      tree.pci("pci0000:00/0000:00:02.0", nvidia("0", {{file, garbage}}));
      EXPECT_THAT(make_pci_probe({tree.path(), {}})->find()->devices, IsEmpty()) << file;
    }
  }
}

TEST_F(PciProbeTest, ReadsAfreshWhenAGpuIsGone) {
  tree_.pci("pci0000:00/0000:00:01.0/0000:01:00.0", nvidia());
  const auto probe = make_pci_probe({tree_.path(), {}});
  EXPECT_THAT(probe->find()->devices, SizeIs(1));
  tree_.remove("devices/pci0000:00/0000:00:01.0");
  EXPECT_THAT(probe->find()->devices, IsEmpty());
}

}  // namespace
}  // namespace remuda::probe
