#include <gmock/gmock.h>

#include "recorded/import.h"

namespace remuda::recorded {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Inventory import_rocm(const std::string& text) { return import_machine(text, "box.txt").value(); }

std::string block(const std::string& title, const std::string& word, const std::string& diagonal = "0") {
  return "===== " + title + " =====\n       GPU0   GPU1\nGPU0   " + diagonal + "   " + word + "\nGPU1   " + word +
         "   " + diagonal + "\n\n";
}
const std::string kWeight = "Weight between two GPUs", kHops = "Hops between two GPUs",
                  kType = "Link Type between two GPUs", kAccess = "Link accessibility between two GPUs";

TEST(RocmTopo, JoinsItsBlocks) {
  const Inventory inventory =
      import_rocm(block(kAccess, "True", "True") + block(kWeight, "15") + block(kHops, "1") + block(kType, "XGMI") +
                  "GPU[0]\t\t: (Topology) Numa Node: 0\nGPU[1]\t\t: (Topology) Numa Node: 3\n"
                  "GPU[1]\t\t: (Topology) Numa Affinity: 2\n");
  ASSERT_THAT(inventory.links, SizeIs(1));
  const Link& link = inventory.links[0];
  EXPECT_EQ(link.weight, Reading<int>(15));
  EXPECT_EQ(link.hops, Reading<int>(1));
  EXPECT_EQ(link.fabric, Reading<Fabric>(Fabric::xgmi));
  EXPECT_EQ(link.peer_access, Reading<PeerAccess>(PeerAccess::ok));
  EXPECT_FALSE(link.path.was_read());
  EXPECT_EQ(inventory.devices.at(1).numa_node, Reading<int>(3));
  EXPECT_EQ(inventory.devices.at(1).vendor, "AMD");
  EXPECT_EQ(inventory.source, "rocm-smi --showtopo");
  EXPECT_THAT(inventory.notes, IsEmpty());
}

TEST(RocmTopo, AnyBlockMayLack) {
  EXPECT_EQ(import_rocm(block(kHops, "3")).links.at(0).hops, Reading<int>(3));
  EXPECT_EQ(import_rocm(block(kType, "PCIE")).links.at(0).fabric, Reading<Fabric>(Fabric::none));
  EXPECT_EQ(import_rocm(block(kAccess, "False", "True")).links.at(0).peer_access,
            Reading<PeerAccess>(PeerAccess::unsupported));
  const Inventory nodes = import_rocm("GPU[1]\t: (Topology) Numa Affinity: 1\nGPU[0]\t: (Topology) Numa Node: -1\n");
  ASSERT_THAT(nodes.devices, SizeIs(2));
  EXPECT_EQ(nodes.devices[1].numa_node, Reading<int>(1));
  EXPECT_EQ(nodes.devices[0].numa_node.missing().detail, "the source says -1");
}

TEST(RocmTopo, AStrangeNameMovesNoNode) {
  const Inventory inventory =
      import_rocm("== Hops between two GPUs ==\nGPU0 G1 GPU2\nGPU2 1 1 0\nGPU[2] : (Topology) Numa Node: 5\n");
  EXPECT_EQ(inventory.devices.at(1).numa_node, Reading<int>(5));
}

TEST(RocmTopo, AValueThatIsNoneIsNoZero) {
  const Inventory inventory = import_rocm(block(kWeight, "?") + block(kType, "PCIE"));
  EXPECT_FALSE(inventory.links.at(0).weight.was_read());
}

TEST(RocmTopo, SaysWhatItDoesNotKnowOrBelieve) {
  EXPECT_THAT(import_rocm(block(kType, "MAGIC")).notes, ElementsAre("unknown word for a link: MAGIC"));
  std::string lopsided = block(kWeight, "15");
  lopsided.replace(lopsided.rfind("15"), 2, "72");
  EXPECT_THAT(import_rocm(lopsided).links.at(0).weight.missing().detail, HasSubstr("in each direction"));
}

TEST(RocmTopo, WithoutAGpuIsRefused) {
  const auto inventory = import_machine("GPU[0]\t: (Topology) Numa Node: 0", "box.txt");
  ASSERT_FALSE(inventory) << "the line may be the half of one";
  EXPECT_EQ(inventory.error().message, "box.txt ends before it names a GPU");
}

}  // namespace
}  // namespace remuda::recorded
