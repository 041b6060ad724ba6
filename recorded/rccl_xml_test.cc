#include <fmt/format.h>
#include <gmock/gmock.h>

#include "recorded/import.h"

namespace remuda::recorded {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Inventory import_rccl(const std::string& inside) {
  return import_machine("<!-- a model -->\n<system version=\"2\">" + inside + "</system>", "box.xml").value();
}

std::string gpu(int bus, int dev, const std::string& links = "", const char* more = "sm=\"80\"") {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x030200\" vendor=\"0x10de\" link_speed=\"16.0 GT/s PCIe\" "
      "link_width=\"16\"><gpu dev=\"{}\" rank=\"{}\" {}>{}</gpu></pci>",
      bus, dev, dev, more, links);
}
std::string nvlink(const std::string& target, int count, const char* target_class) {
  return fmt::format("<nvlink target=\"{}\" count=\"{}\" tclass=\"{}\"/>", target, count, target_class);
}
std::string bridge(int bus, const std::string& inside) {
  return fmt::format("<pci busid=\"0000:{:02x}:00.0\" class=\"0x060400\">{}</pci>", bus, inside);
}
std::string cpu(int node, const std::string& inside) {
  return fmt::format("<cpu numaid=\"{}\" affinity=\"00000000,000000f0\" arch=\"x86_64\">{}</cpu>", node, inside);
}
std::string card(int bus, const char* name) {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x020700\"><nic><net name=\"{}\" speed=\"200000\"/></nic></pci>", bus,
      name);
}

Path path(const Inventory& inventory, const char* a, const char* b) {
  return inventory.link(inventory.resolve(a).value()->id, inventory.resolve(b).value()->id)->path.value();
}

TEST(RcclXml, DerivesPathsFromTheTree) {
  const Inventory inventory =
      import_rccl(cpu(1, bridge(0x10, bridge(0x11, gpu(0x12, 0) + gpu(0x13, 1)) + gpu(0x14, 2)) + gpu(0x20, 3)) +
                  cpu(0, gpu(0x80, 4)));
  EXPECT_EQ(path(inventory, "gpu:0", "gpu:1"), Path::pix);
  EXPECT_EQ(path(inventory, "gpu:0", "gpu:2"), Path::pxb);
  EXPECT_EQ(path(inventory, "gpu:0", "gpu:3"), Path::phb);
  EXPECT_EQ(path(inventory, "gpu:0", "gpu:4"), Path::sys);
  EXPECT_EQ(inventory.source, "NCCL or RCCL topology file");
}

TEST(RcclXml, ReadsDevices) {
  const Inventory inventory = import_rccl(cpu(1, gpu(0x20, 1, "", "sm=\"90\" gcn=\"gfx942\"") + gpu(0x10, 0)));
  const Device &first = inventory.devices.at(0), &second = inventory.devices.at(1);
  EXPECT_EQ(first.id, "0000:10:00.0") << "devices stand in the order of dev";
  EXPECT_EQ(first.vendor, "NVIDIA");
  EXPECT_EQ(first.compute_capability.value(), "8.0");
  EXPECT_EQ(first.pcie_generation_max.value(), 4);
  EXPECT_EQ(first.pcie_width_max.value(), 16);
  EXPECT_EQ(first.numa_node.value(), 1);
  EXPECT_THAT(first.cores.value(), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(second.architecture.value(), "gfx942");
  EXPECT_FALSE(second.compute_capability.was_read());
  ASSERT_THAT(inventory.numa, SizeIs(1));
  EXPECT_THAT(inventory.numa[0].cores.value(), ElementsAre(4, 5, 6, 7));
}

TEST(RcclXml, CountsDirectLinks) {
  const Inventory inventory =
      import_rccl(cpu(0, gpu(0x10, 0, nvlink("0000:20:00.0", 2, "0x030200")) +
                             gpu(0x20, 1, nvlink("0000:10:00.0", 2, "0x030200")) + gpu(0x30, 2)));
  const Link* link = inventory.link("0000:10:00.0", "0000:20:00.0");
  EXPECT_EQ(link->fabric.value(), Fabric::nvlink);
  EXPECT_EQ(link->fabric_links.value(), 2);
  EXPECT_EQ(link->fabric_switched.value(), false);
  EXPECT_EQ(inventory.link("0000:10:00.0", "0000:30:00.0")->fabric.value(), Fabric::none);
}

TEST(RcclXml, GpusAtSwitchesSeeEachOther) {
  const std::string six = nvlink("0000:c4:00.0", 2, "0x068000") + nvlink("0000:c5:00.0", 4, "0x068000");
  const Inventory inventory = import_rccl(cpu(0, gpu(0x10, 0, six) + gpu(0x20, 1, six + six)));
  EXPECT_EQ(inventory.links.at(0).fabric_links.value(), 6);
  EXPECT_EQ(inventory.links.at(0).fabric_switched.value(), true);
}

TEST(RcclXml, ReadsXgmiAndDoesNotGuessACount) {
  const std::string forth = "<xgmi target=\"0000:20:00.0\" count=\"4\" tclass=\"0x038000\"/>";
  const std::string back = "<xgmi target=\"0000:10:00.0\" count=\"1\" tclass=\"0x038000\"/>";
  const Link link = import_rccl(cpu(0, gpu(0x10, 0, forth) + gpu(0x20, 1, back))).links.at(0);
  EXPECT_EQ(link.fabric.value(), Fabric::xgmi);
  EXPECT_THAT(link.fabric_links.missing().detail, HasSubstr("4 in one direction and 1"));
}

TEST(RcclXml, ReadsNetworkCards) {
  const Inventory inventory = import_rccl(cpu(
      0, bridge(0x0f, gpu(0x10, 0) + card(0x11, "mlx5_0")) + "<nic><net name=\"eth0\"/><net name=\"eth0\"/></nic>"));
  ASSERT_THAT(inventory.nics, SizeIs(2));
  EXPECT_EQ(inventory.nics[0].pci.value(), "0000:11:00.0");
  EXPECT_EQ(inventory.nics[0].numa_node.value(), 0);
  EXPECT_FALSE(inventory.nics[1].pci.was_read());
  EXPECT_EQ(inventory.link("0000:10:00.0", "mlx5_0")->path.value(), Path::pix);
  EXPECT_EQ(inventory.link("mlx5_0", "eth0")->path.value(), Path::phb);
  EXPECT_FALSE(inventory.link("0000:10:00.0", "mlx5_0")->fabric.was_read());
  EXPECT_THAT(inventory.notes, ElementsAre("a second network card eth0 is left out"));
}

TEST(RcclXml, UnknownNodesAndMasksAreMissing) {
  const Inventory inventory = import_rccl("<cpu numaid=\"-1\" affinity=\"zz\">" + gpu(0x10, 0) + "</cpu>");
  EXPECT_FALSE(inventory.devices.at(0).numa_node.has_value());
  EXPECT_FALSE(inventory.devices.at(0).cores.has_value());
  EXPECT_THAT(inventory.numa, SizeIs(0));
}

TEST(RcclXml, WithoutGpusIsRefused) {
  const auto inventory = import_machine("<system version=\"2\"></system>", "box.xml");
  ASSERT_FALSE(inventory);
  EXPECT_THAT(inventory.error().message, HasSubstr("box.xml names no GPU"));
}

TEST(RcclXml, RefusesTooManyGpus) {
  std::string gpus;
  for (int i = 0; i < 257; ++i) gpus += gpu(i % 256, i);
  const auto inventory = import_machine("<system>" + gpus + "</system>", "box.xml");
  ASSERT_FALSE(inventory);
  EXPECT_THAT(inventory.error().message, HasSubstr("257 GPUs and network cards"));
}

}  // namespace
}  // namespace remuda::recorded
