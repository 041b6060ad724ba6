// `nvidia-smi topo -m` and `topo -p2p` as they are found in the wild.
#include <gmock/gmock.h>

#include "recorded/import.h"

namespace remuda::recorded {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Inventory import_matrix(const std::string& text) { return import_machine(text, "box.txt").value(); }

/// Two GPUs with a word between them.
Inventory pair(const std::string& word) {
  return import_matrix("\tGPU0\tGPU1\nGPU0\t X \t" + word + "\nGPU1\t" + word + "\t X \n");
}

TEST(SmiMatrix, KnowsAllWords) {
  for (const char* word : {"PSB", "PIX", "PXB", "PHB", "NODE", "SYS"})
    EXPECT_EQ(to_string(pair(word).links.at(0).path.value()), std::string(word));
  EXPECT_EQ(pair("SOC").links.at(0).path, Reading<Path>(Path::sys));
  const Link link = pair("NV12").links.at(0);
  EXPECT_EQ(link.fabric, Reading<Fabric>(Fabric::nvlink));
  EXPECT_EQ(link.fabric_links, Reading<int>(12));
  EXPECT_FALSE(link.path.was_read());
}

TEST(SmiMatrix, KeepsAnUnknownWordAsLabelAndSaysSo) {
  const Inventory inventory = pair("C2C\x1b[2J!");
  EXPECT_EQ(inventory.links.at(0).label, "C2C!");
  EXPECT_THAT(inventory.notes, ElementsAre("unknown words for a link: C2C!"));
  EXPECT_LE(pair(std::string(5000, 'Q')).links.at(0).label.size(), 32U);
}

TEST(SmiMatrix, NamesAndCountsDevices) {
  const Inventory inventory = pair("PIX");
  EXPECT_EQ(inventory.host, "box");
  EXPECT_EQ(inventory.source, "nvidia-smi topo -m");
  ASSERT_THAT(inventory.devices, SizeIs(2));
  EXPECT_EQ(inventory.devices[1].id, "gpu:1");
  EXPECT_EQ(inventory.devices[1].vendor, "NVIDIA");
  EXPECT_FALSE(inventory.devices[1].memory_bytes.was_read());
}

TEST(SmiMatrix, ReadsASingleGpu) {
  const Inventory inventory = import_matrix("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-3\t\tN/A\n");
  ASSERT_THAT(inventory.devices, SizeIs(1));
  EXPECT_EQ(inventory.devices[0].cores, (Reading<std::vector<int>>({0, 1, 2, 3})));
  EXPECT_EQ(inventory.devices[0].numa_node.missing().detail, "the source says N/A");
}

std::string beside(const std::string& columns) {
  return "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t" + columns + "\n";
}

TEST(SmiMatrix, AlignsBlankColumns) {
  for (const char* columns : {"0-1\t3\t\tN/A", "0-1\t3\tN/A", "0-1\t3", "0-1\t3\t\tN/A\t"}) {
    const Device device = import_matrix(beside(columns)).devices.at(0);
    EXPECT_EQ(device.numa_node, Reading<int>(3)) << columns;
    EXPECT_EQ(device.cores, (Reading<std::vector<int>>({0, 1}))) << columns;
  }
  const Device blank = import_matrix(beside("\t3\t\tN/A")).devices.at(0);
  EXPECT_EQ(blank.numa_node, Reading<int>(3));
  EXPECT_TRUE(blank.cores.was_read());
  EXPECT_FALSE(blank.cores.has_value());
}

TEST(SmiMatrix, DoesNotGuessWhichColumnABlankOneIs) {
  const Inventory inventory = import_matrix("      GPU0 CPU Affinity NUMA Affinity GPU NUMA ID\nGPU0   X   1   N/A\n");
  EXPECT_FALSE(inventory.devices.at(0).numa_node.has_value());
  EXPECT_FALSE(inventory.devices.at(0).cores.has_value());
  EXPECT_THAT(inventory.notes, ElementsAre("the row of GPU0 does not say what stands in which column"));
}

TEST(SmiMatrix, SaysWhyAReadingIsMissing) {
  const auto node = [](const std::string& text) { return import_matrix(beside("0\t" + text)).devices.at(0).numa_node; };
  EXPECT_THAT(node("0-1").missing().detail, HasSubstr("several nodes, 0-1"));
  EXPECT_THAT(node("0,8,252-255").missing().detail, HasSubstr("several nodes"));
  const auto cores = [](const std::string& text) { return import_matrix(beside(text + "\t0")).devices.at(0).cores; };
  for (const char* wrong : {"3-1", "0-99999999", "1,1", "x", "1-", "0-8192", "5,2"})
    EXPECT_FALSE(cores(wrong).has_value()) << wrong;
  EXPECT_TRUE(cores("0-8191").has_value());
}

TEST(SmiMatrix, UngluesWordsThatLostTheirTab) {
  const Inventory inventory = import_matrix(
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\n"
      "GPU0\t X \tPIXNODE\t0-3\n"
      "GPU1\tPIX X \tNV12\t0-3\n"
      "GPU2\tNODE\tNV12\t X0-3\n");
  EXPECT_EQ(inventory.link("gpu:0", "gpu:1")->path, Reading<Path>(Path::pix));
  EXPECT_EQ(inventory.link("gpu:0", "gpu:2")->path, Reading<Path>(Path::node));
  EXPECT_EQ(inventory.link("gpu:1", "gpu:2")->fabric_links, Reading<int>(12));
  for (const Device& device : inventory.devices) EXPECT_EQ(device.cores.value().size(), 4U);
  EXPECT_THAT(inventory.notes, IsEmpty());
}

TEST(SmiMatrix, UsesACellOfEitherDirection) {
  const Inventory inventory = import_matrix("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPIX\tSYS\nGPU1\tPIX\n");
  EXPECT_EQ(inventory.link("gpu:0", "gpu:2")->path, Reading<Path>(Path::sys));
  EXPECT_EQ(inventory.link("gpu:1", "gpu:2"), nullptr);
  EXPECT_THAT(inventory.notes, ElementsAre("the row of GPU2 is missing", "the row of GPU1 ends early"));
}

TEST(SmiMatrix, DoesNotGuessWhichDirectionIsRight) {
  const Inventory inventory = import_matrix("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tSYS\t X \n");
  EXPECT_EQ(inventory.links.at(0).path.missing().detail, "the source says PIX in one direction and SYS in the other");
  EXPECT_THAT(inventory.notes, ElementsAre("the two directions differ for GPU0-GPU1"));
}

TEST(SmiMatrix, DoesNotUseARowWhoseCellsHaveMoved) {
  const Inventory inventory =
      import_matrix("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPIX\tPIX\nGPU1\t X \tSYS\tSYS\nGPU2\tPIX\tPHB\t X \n");
  EXPECT_EQ(inventory.link("gpu:0", "gpu:1")->path, Reading<Path>(Path::pix));
  EXPECT_EQ(inventory.link("gpu:1", "gpu:2")->path, Reading<Path>(Path::phb));
  EXPECT_THAT(inventory.notes, ElementsAre("the row of GPU1 is not used: X is not on its diagonal"));
}

TEST(SmiMatrix, TellsNoNvlinkFromHiddenNvlink) {
  const std::string matrix = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n\nLegend:\n\n  X    = Self\n";
  EXPECT_FALSE(pair("PIX").links.at(0).fabric.was_read());
  EXPECT_EQ(import_matrix(matrix + "  NV#  = Connection traversing a bonded set of # NVLinks\n").links.at(0).fabric,
            Reading<Fabric>(Fabric::none));
  EXPECT_EQ(import_matrix(matrix).links.at(0).fabric.missing().detail, "nvidia-smi topo -mp hides NVLink");
}

TEST(SmiMatrix, FindsASwitchWhereAGpuHasNoSuchNumberOfLinks) {
  const auto four = [](const std::string& w) {
    return import_matrix("\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\t" + w + "\t" + w + "\t" + w + "\nGPU1\t" + w + "\tX\t" +
                         w + "\t" + w + "\nGPU2\t" + w + "\t" + w + "\tX\t" + w + "\nGPU3\t" + w + "\t" + w + "\t" + w +
                         "\tX\n");
  };
  EXPECT_EQ(four("NV18").links.at(5).fabric_switched, Reading<bool>(true));
  EXPECT_FALSE(four("NV12").links.at(5).fabric_switched.was_read());
}

TEST(SmiMatrix, CallsCardsAsTheLegendDoes) {
  const Inventory inventory = import_matrix(
      "\tGPU0\tNIC0\tNIC1\nGPU0\t X \tPIX\tSYS\nNIC0\tPIX\t X \tPHB\nNIC1\tSYS\tPHB\t X \n\nNIC Legend:\n\n"
      "  NIC0: mlx5_0\n  NIC1: gpu:0\n");
  ASSERT_THAT(inventory.nics, SizeIs(2));
  EXPECT_EQ(inventory.nics[0].name, "mlx5_0");
  EXPECT_EQ(inventory.nics[1].name, "NIC1") << "a name that could be a device's is not taken";
  EXPECT_EQ(inventory.link("gpu:0", "mlx5_0")->path, Reading<Path>(Path::pix));
  EXPECT_EQ(inventory.link("mlx5_0", "NIC1")->path, Reading<Path>(Path::phb));
  EXPECT_FALSE(inventory.link("gpu:0", "mlx5_0")->fabric.was_read());
}

std::string peers(const std::string& option, const std::string& word) {
  return "# nvidia-smi topo -p2p " + option + "\n \tGPU0\tGPU1\t\n GPU0\tX\t" + word + "\t\n GPU1\t" + word + "\tX\t\n";
}

TEST(PeerMatrix, KnowsAllWords) {
  const std::pair<const char*, PeerAccess> words[] = {{"OK", PeerAccess::ok},       {"CNS", PeerAccess::chipset},
                                                      {"GNS", PeerAccess::gpu},     {"TNS", PeerAccess::topology},
                                                      {"DR", PeerAccess::disabled}, {"NS", PeerAccess::unsupported},
                                                      {"U", PeerAccess::unknown}};
  for (const auto& [word, access] : words) {
    const Inventory inventory = import_matrix(peers("r", word));
    EXPECT_EQ(inventory.links.at(0).peer_access, Reading<PeerAccess>(access)) << word;
    EXPECT_FALSE(inventory.links.at(0).path.was_read());
    EXPECT_EQ(inventory.source, "nvidia-smi topo -p2p");
  }
}

TEST(PeerMatrix, JoinsTheMatrixOfLinks) {
  const Inventory inventory = import_matrix("\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n" + peers("rw", "GNS"));
  ASSERT_THAT(inventory.links, SizeIs(1));
  EXPECT_EQ(inventory.links[0].path, Reading<Path>(Path::phb));
  EXPECT_EQ(inventory.links[0].peer_access, Reading<PeerAccess>(PeerAccess::gpu));
}

TEST(PeerMatrix, OfReadAndWriteTheForbiddenOneCounts) {
  EXPECT_EQ(import_matrix(peers("r", "OK") + peers("w", "CNS")).links.at(0).peer_access,
            Reading<PeerAccess>(PeerAccess::chipset));
  EXPECT_EQ(import_matrix(peers("r", "CNS") + peers("w", "OK")).links.at(0).peer_access,
            Reading<PeerAccess>(PeerAccess::chipset));
}

TEST(PeerMatrix, AtomicsAreNoAccess) {
  const Inventory inventory = import_matrix(peers("r", "OK") + peers("a", "NS"));
  EXPECT_EQ(inventory.links.at(0).peer_access, Reading<PeerAccess>(PeerAccess::ok));
  EXPECT_THAT(inventory.notes, ElementsAre("of topo -p2p only r and w are read"));
}

TEST(SmiMatrix, RefusesAMatrixWithoutRows) {
  for (const char* text :
       {"\tGPU0\tGPU1\n", "GPU0 and GPU1 are fast\n", "GPU0", "hello\n", "\tGPU0\tGPU0\nGPU0\tX\tX\n"}) {
    const auto inventory = import_machine(text, "box.txt");
    ASSERT_FALSE(inventory) << text;
    EXPECT_THAT(inventory.error().message, HasSubstr("box.txt has no rows of a link matrix; expected"));
  }
}

TEST(SmiMatrix, RefusesTooManyDevices) {
  std::string header;
  for (int i = 0; i < 257; ++i) header += "\tGPU" + std::to_string(i);
  const auto inventory = import_machine(header + "\nGPU0\tX\n", "box.txt");
  ASSERT_FALSE(inventory);
  EXPECT_EQ(inventory.error().message, "box.txt: a matrix of 257 devices; at most 256 are read");
}

TEST(ModelMatrix, TwoGpusAtOneAddressKeepTheirPlaces) {
  const Inventory inventory =
      import_matrix("\tGPU0\tGPU1\tNUMA\tBUSID\nGPU0\tX\tXG2\t0\t0000:4e:00.0\nGPU1\tXG2\tX\t1\t0000:4E:00.0\n");
  EXPECT_EQ(inventory.devices.at(0).id, "0000:4e:00.0");
  EXPECT_EQ(inventory.devices.at(1).id, "gpu:1");
  EXPECT_THAT(inventory.notes, ElementsAre("two GPUs have the PCI address 0000:4e:00.0"));
  EXPECT_EQ(inventory.links.at(0).fabric_links, Reading<int>(2));
}

TEST(KfdMatrix, KeepsTheSourcesWords) {
  const Inventory inventory = import_matrix(
      "\tGPU0\tGPU1\tGPU2\tCPUNODE\nGPU0\tX\tXGMI/15\tPCIe/72\t[0]\nGPU1\tXGMI/15\tX\tPCIE/72\t[0]\n"
      "GPU2\tPCIe/72\tPCIE/72\tX\t[1]\n");
  const Link* link = inventory.link("gpu:0", "gpu:2");
  EXPECT_EQ(link->label, "PCIe/72");
  EXPECT_EQ(link->path, Reading<Path>(Path::pcie));
  EXPECT_EQ(link->fabric, Reading<Fabric>(Fabric::none));
  EXPECT_EQ(link->weight, Reading<int>(72));
  EXPECT_EQ(inventory.link("gpu:0", "gpu:1")->fabric, Reading<Fabric>(Fabric::xgmi));
  EXPECT_EQ(inventory.devices.at(2).numa_node, Reading<int>(1));
}

}  // namespace
}  // namespace remuda::recorded
