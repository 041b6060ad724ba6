#include "topology/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "topology/testing/machines.h"

namespace remuda::topology {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string shown(const Inventory& inventory) { return topology_text(inventory, make_matrix(inventory)); }

TEST(TopologyText, ShowsLabelsSpeedsAndMeanings) {
  Inventory inventory = test_machine(R"(
    X   NV4 SYS | numa=0 cores=0-3 model=Card_A
    NV4 X   SYS | numa=0 cores=0-3 model=Card_A
    SYS SYS X   | numa=1 cores=4-7 model=Card_B
    nic PIX PHB SYS | name=mlx5_0 numa=0)");
  measure(inventory, "GPU-0", "GPU-1", 88.125);
  inventory.notes.emplace_back("the source was cut");
  EXPECT_EQ(shown(inventory),
            "        gpu:0  gpu:1  gpu:2  CPUS  NUMA  MODEL\n"
            "gpu:0   X      NV4    SYS     0-3     0  Card A\n"
            "gpu:1   NV4    X      SYS     0-3     0  Card A\n"
            "gpu:2   SYS    SYS    X       4-7     1  Card B\n"
            "mlx5_0  PIX    PHB    SYS             0\n"
            "\n"
            "GB/s   gpu:0  gpu:1  gpu:2\n"
            "gpu:0     -   88.1*  10.0\n"
            "gpu:1  88.1*     -   10.0\n"
            "gpu:2  10.0   10.0      -\n"
            "\n"
            "  NVn     n NVLink links\n"
            "  PIX     at most one PCIe switch between\n"
            "  PHB     a PCIe host bridge between\n"
            "  SYS     across NUMA nodes\n"
            "  *       measured; other figures are assumed\n"
            "\n"
            "note: the source was cut\n");
}

TEST(TopologyText, EightGpusFitInto120Columns) {
  Inventory inventory = switched();
  for (Device& device : inventory.devices) {
    device.cores = std::vector<int>{};
    std::vector<int> cores;
    for (int core = 0; core < 200; core += 3) cores.push_back(core);
    device.cores = cores;
  }
  for (const std::string& line : split(shown(inventory), '\n')) EXPECT_LE(line.size(), 120U) << line;
}

TEST(TopologyText, SaysWhatIsNotKnown) {
  const Inventory inventory = test_machine("X ?\n? X");
  EXPECT_THAT(shown(inventory), HasSubstr("gpu:0  X      ?      ?     ?"));
  EXPECT_THAT(shown(inventory), HasSubstr("gpu:0     -      ?\n"));
  EXPECT_THAT(shown(inventory), HasSubstr("  ?       not known\n"));
}

TEST(TopologyText, OneDeviceHasNoSpeeds) {
  const Inventory inventory = test_machine("X | numa=0 model=Card");
  EXPECT_EQ(shown(inventory), "       gpu:0  CPUS  NUMA  MODEL\ngpu:0  X      ?        0  Card\n");
}

TEST(TopologyText, LeavesOutNetworkCardsOfWhichNothingIsKnown) {
  Inventory inventory = two_sockets();
  inventory.nics.push_back({.name = "eth0", .numa_node = 0});
  EXPECT_THAT(shown(inventory), Not(HasSubstr("eth0")));
  EXPECT_THAT(shown(inventory), Not(HasSubstr("not known")));
}

TEST(TopologyText, ShowsNoControlCharacters) {
  Inventory inventory = pairs();
  inventory.devices[0].model = "\x1b[31mred";
  inventory.links[0].label = "N\x07V";
  inventory.nics.push_back({.name = "n\x1b"});
  inventory.links.push_back({.a = "GPU-0", .b = "n\x1b", .path = Path::pix});
  inventory.notes.emplace_back("a\x1b]0;b");
  const std::string text = shown(inventory);
  EXPECT_EQ(text.find_first_of("\x1b\x07"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("?[31mred"));
}

TEST(TopologyText, NamesPartitionedGpus) {
  Inventory inventory = pairs();
  inventory.devices[2].partitioned = true;
  EXPECT_THAT(shown(inventory), EndsWith("note: gpu:2 is cut into partitions; they have no links\n"));
}

TEST(RingText, NamesTheSlowestLinkAndTheOrder) {
  const Inventory inventory = cube_mesh();
  EXPECT_EQ(ring_text(make_matrix(inventory), "all"), "ring bottleneck of all: 50.0 GB/s at gpu:0-gpu:3 (assumed)\n");
  EXPECT_EQ(ring_order_text(make_matrix(inventory)), "ring order: gpu:0 gpu:3 gpu:2 gpu:1 gpu:5 gpu:6 gpu:7 gpu:4\n");
  const Inventory twice = pairs();
  EXPECT_EQ(ring_text(make_matrix(twice), "all"), "ring bottleneck of all: 10.0 GB/s at gpu:1-gpu:2 (assumed)\n");
}

TEST(RingText, SaysWhyThereIsNone) {
  const Inventory apart = test_machine("X ?\n? X"), alone = test_machine("X");
  EXPECT_EQ(ring_text(make_matrix(apart), "both"),
            "ring bottleneck of both: none; no ring of links of known speed joins them\n");
  EXPECT_EQ(tree_text(make_matrix(apart), "both"),
            "tree bottleneck of both: none; links of known speed do not join them\n");
  EXPECT_EQ(ring_text(make_matrix(alone), "gpu:0"), "gpu:0 needs no link\n");
  EXPECT_EQ(tree_text(make_matrix(alone), "gpu:0"), "");
  EXPECT_EQ(ring_order_text(make_matrix(apart)), "");
}

TEST(RingText, IsBoundedInSize) {
  Inventory inventory{.host = "host1"};
  for (int i = 0; i < 17; ++i) inventory.devices.push_back({.id = std::to_string(i), .index = i, .numa_node = 0});
  EXPECT_EQ(ring_text(make_matrix(inventory), "all"),
            "ring bottleneck of all: not searched for; best rings are found for up to 16 devices\n");
}

TEST(TreeText, SaysWhatIsMeasured) {
  Inventory inventory = pairs();
  measure(inventory, "GPU-1", "GPU-2", 11.5);
  EXPECT_EQ(tree_text(make_matrix(inventory), "all"), "tree bottleneck of all: 11.5 GB/s at gpu:1-gpu:2 (measured)\n");
}

}  // namespace
}  // namespace remuda::topology
