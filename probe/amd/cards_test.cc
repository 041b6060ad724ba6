#include "probe/amd/cards.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace remuda::probe::amd {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

KfdNode gpu(int number, int location, uint64_t unique_id, std::vector<KfdLink> links = {}) {
  KfdNode node;
  node.number = number;
  node.properties = {{"simd_count", 40}, {"simd_per_cu", 4}, {"location_id", location}, {"unique_id", unique_id}};
  node.links = std::move(links);
  return node;
}

KfdNode cpu(int number) {
  KfdNode node;
  node.number = number;
  node.properties = {{"cpu_cores_count", 64}};
  return node;
}

constexpr int kBus63 = 0x6300, kBus64 = 0x6400;

TEST(CardsOf, JoinsNodesOfOneGpu) {
  // Older drivers distinguish partitions by the function, newer ones by the top bits.
  const Kfd older{{gpu(2, kBus63, 7), gpu(3, kBus63 + 1, 7), gpu(4, kBus64, 8)}, ""};
  const auto cards = cards_of(older);
  ASSERT_THAT(cards, SizeIs(2));
  EXPECT_EQ(cards[0].id, "0000:63:00.0");
  EXPECT_THAT(cards[0].nodes, SizeIs(2));
  const Kfd newer{{gpu(2, kBus63, 7), gpu(3, kBus63 + (1 << 28), 9)}, ""};
  EXPECT_THAT(cards_of(newer), SizeIs(1));
}

TEST(CardsOf, KeepsGpusApart) {
  EXPECT_THAT(cards_of({{gpu(2, kBus63, 0), gpu(3, kBus63 + 1, 0)}, ""}), SizeIs(2));
  EXPECT_THAT(cards_of({{gpu(2, kBus63, 7), gpu(3, kBus64, 7)}, ""}), SizeIs(2));
  EXPECT_THAT(cards_of({{cpu(0)}, ""}), IsEmpty());
  const Kfd nowhere{{gpu(2, 0, 7), gpu(3, 0, 7)}, ""};
  const auto cards = cards_of(nowhere);
  ASSERT_THAT(cards, SizeIs(2));
  EXPECT_EQ(cards[1].id, "kfd:3");
}

TEST(UniqueId, IsPrintedAsTheVendorsToolsDo) {
  EXPECT_EQ(uuid_text(1801979520617338022), "GPU-1901ead3a2ecd4a6");
  EXPECT_EQ(uuid_text(1), "GPU-0000000000000001");
  EXPECT_EQ(parse_unique_id("1901ead3a2ecd4a6"), 1801979520617338022);
  for (const char* none : {"", "0", "0x19", "xyz", "1901ead3a2ecd4a61", "19 "})
    EXPECT_EQ(parse_unique_id(none), std::nullopt) << none;
}

TEST(ReadCard, SumsUpPartitionsAndSaysWhatIsMissing) {
  Kfd kfd{{gpu(2, kBus63, 7), gpu(3, kBus63, 7)}, ""};
  kfd.nodes[0].memory_bytes = 100;
  Device device;
  read_card(cards_of(kfd).front(), device);
  EXPECT_EQ(device.multiprocessors.value(), 20);
  EXPECT_EQ(device.memory_bytes.missing().detail, "the driver's node reports no memory of its own");
  EXPECT_EQ(device.architecture.missing().detail, "the driver's node reports no gfx_target_version");
  kfd.nodes[1].memory_bytes = 100;
  read_card(cards_of(kfd).front(), device);
  EXPECT_EQ(device.memory_bytes.value(), 200);
}

TEST(NearestNumaNode, IsThePositionOfTheNearestCpu) {
  const Kfd kfd{{cpu(0), gpu(1, kBus63, 7, {{.to = 0, .weight = 52}, {.to = 2, .weight = 20}}), cpu(2)}, ""};
  EXPECT_EQ(nearest_numa_node(kfd, kfd.nodes[1]), 1);
  EXPECT_EQ(nearest_numa_node(kfd, gpu(3, kBus64, 8)), std::nullopt);
  EXPECT_EQ(nearest_numa_node(kfd, gpu(3, kBus64, 8, {{.to = 1, .weight = 15}, {.to = 0}})), 0);
}

TEST(LinksOf, TellsXgmiFromPcieAndCountsLinks) {
  const Kfd kfd{{gpu(1, kBus63, 7,
                     {{.to = 2, .type = 11, .weight = 15, .min_mbps = 50000, .max_mbps = 200000},
                      {.to = 3, .type = 2, .weight = 72},
                      {.to = 0, .type = 2, .weight = 20},
                      {.to = 1, .type = 11}}),
                 gpu(2, kBus64, 8, {{.to = 1, .type = 2, .weight = 99}, {.to = 3, .type = 4}}), gpu(3, 0x6500, 9)},
                ""};
  const auto links = links_of(kfd, {{1, {"a", 0, false}}, {2, {"b", 1, false}}, {3, {"c", 2, false}}});
  ASSERT_THAT(links, SizeIs(3));
  EXPECT_EQ(links[0].b, "b");
  EXPECT_EQ(links[0].fabric.value(), Fabric::xgmi);
  EXPECT_EQ(links[0].fabric_links.value(), 4);
  EXPECT_EQ(links[0].weight.value(), 15);
  EXPECT_DOUBLE_EQ(links[0].max_gbps.value(), 200);
  EXPECT_FALSE(links[0].path.was_read());
  EXPECT_FALSE(links[0].hops.was_read());
  EXPECT_EQ(links[1].fabric.value(), Fabric::none);
  EXPECT_EQ(links[1].weight.value(), 72);
  EXPECT_FALSE(links[1].max_gbps.was_read());
  EXPECT_FALSE(links[2].fabric.was_read());
  EXPECT_FALSE(links[2].weight.was_read());
}

TEST(LinksOf, CountsNoLinksItCannotTell) {
  const auto counted = [](uint64_t min, uint64_t max) {
    const Kfd kfd{{gpu(1, kBus63, 7, {{.to = 2, .type = 11, .min_mbps = min, .max_mbps = max}}), gpu(2, kBus64, 8)},
                  ""};
    return links_of(kfd, {{1, {"a", 0, false}}, {2, {"b", 1, false}}}).front().fabric_links.value_or(-1);
  };
  EXPECT_EQ(counted(50000, 50000), 1);
  EXPECT_EQ(counted(0, 50000), -1);
  EXPECT_EQ(counted(0, 0), -1);
  EXPECT_EQ(counted(50000, 0), -1);
  EXPECT_EQ(counted(30000, 50000), -1);
  EXPECT_EQ(counted(1, 50000), -1);
}

TEST(LinksOf, KnowsPartsOfOneGpu) {
  const Kfd kfd{{gpu(1, kBus63, 7,
                     {{.to = 2, .type = 11, .weight = 13, .min_mbps = 819200, .max_mbps = 819200},
                      {.to = 3, .type = 2, .weight = 40}}),
                 gpu(2, kBus63, 7), gpu(3, kBus64, 8)},
                ""};
  const auto links = links_of(kfd, {{1, {"a", 0, true}}, {2, {"b", 0, true}}, {3, {"c", 1, false}}});
  ASSERT_THAT(links, SizeIs(2));
  EXPECT_EQ(links[0].path.value(), Path::psb);
  EXPECT_FALSE(links[0].fabric_links.was_read());
  EXPECT_EQ(links[1].path.value(), Path::pcie);
}

}  // namespace
}  // namespace remuda::probe::amd
