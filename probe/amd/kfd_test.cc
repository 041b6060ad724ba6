#include "probe/amd/kfd.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <random>

#include "probe/testing/tree.h"

namespace remuda::probe::amd {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kNodes = "class/kfd/kfd/topology/nodes/";

KfdNode node_with(const std::string& properties) { return {.properties = parse_properties(properties)}; }

TEST(ParseProperties, TakesNamesWithNumbers) {
  const Properties properties = parse_properties("simd_count 416\nunique_id 18446744073709551615\nlast 0");
  EXPECT_EQ(find(properties, "simd_count"), 416u);
  EXPECT_EQ(find(properties, "unique_id"), UINT64_MAX);
  EXPECT_EQ(find(properties, "last"), 0u);
  EXPECT_EQ(find(properties, "none"), std::nullopt);
  EXPECT_EQ(find(properties, "simd_count", 415), std::nullopt);
}

TEST(ParseProperties, SkipsWhatIsNone) {
  const Properties properties =
      parse_properties("\n\n 5\nname\nname \nname x\nname -1\nname 1 2\nname 99999999999999999999\na 1\r\nb 2");
  EXPECT_THAT(properties, SizeIs(1));
  EXPECT_EQ(find(properties, "b"), 2u);
}

TEST(ParseProperties, IsBounded) {
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += fmt::format("name{} {}\n", i, i);
  EXPECT_THAT(parse_properties(many), SizeIs(512));
}

TEST(ParseProperties, SurvivesAnyBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = " \nab019\xff"[random() % 8];
    for (const auto& [name, value] : parse_properties(bytes))
      EXPECT_NE(bytes.find(name + " "), std::string::npos) << value;
  }
}

TEST(KfdNode, HasAPciAddress) {
  EXPECT_EQ(node_with("location_id 25344\ndomain 0").pci(), "0000:63:00.0");
  EXPECT_EQ(node_with("location_id 25353\ndomain 2").pci(), "0002:63:01.1");
  EXPECT_EQ(node_with("location_id 805331712").pci(), "0000:63:00.0");
  EXPECT_EQ(node_with("location_id 0\ndomain 0").pci(), std::nullopt);
  EXPECT_EQ(node_with("domain 0").pci(), std::nullopt);
  EXPECT_EQ(node_with("location_id 99999999999").pci(), std::nullopt);
}

TEST(KfdNode, HasATarget) {
  EXPECT_EQ(node_with("gfx_target_version 90010").target(), "gfx90a");
  EXPECT_EQ(node_with("gfx_target_version 90402").target(), "gfx942");
  EXPECT_EQ(node_with("gfx_target_version 110000").target(), "gfx1100");
  EXPECT_EQ(node_with("gfx_target_version 0").target(), std::nullopt);
}

TEST(KfdNode, CountsMultiprocessors) {
  EXPECT_EQ(node_with("simd_count 416\nsimd_per_cu 4").multiprocessors(), 104);
  EXPECT_EQ(node_with("simd_count 416\nsimd_per_cu 0").multiprocessors(), std::nullopt);
  EXPECT_EQ(node_with("simd_count 416").multiprocessors(), std::nullopt);
}

TEST(ReadKfd, ReadsNodesLinksAndMemory) {
  const MadeTree tree;
  tree.write(std::string(kNodes) + "0/properties", "cpu_cores_count 64\nsimd_count 0\n");
  const std::string gpu = std::string(kNodes) + "1/";
  tree.write(gpu + "properties", "cpu_cores_count 0\nsimd_count 416\n");
  tree.write(gpu + "gpu_id", "51110\n");
  tree.write(gpu + "io_links/0/properties", "type 2\nnode_to 0\nweight 20\nmin_bandwidth 312\nmax_bandwidth 32000\n");
  tree.write(gpu + "p2p_links/0/properties", "type 11\nnode_to 2\nweight 15\n");
  tree.write(gpu + "p2p_links/1/properties", "type 11\nweight 15\n");
  tree.write(gpu + "mem_banks/0/properties", "heap_type 1\nsize_in_bytes 1000\n");
  tree.write(gpu + "mem_banks/0/used_memory", "70\n");
  tree.write(gpu + "mem_banks/1/properties", "heap_type 2\nsize_in_bytes 500\n");
  tree.write(gpu + "mem_banks/2/properties", "heap_type 0\nsize_in_bytes 9000\n");
  const Kfd kfd = read_kfd(tree.path());
  EXPECT_EQ(kfd.reason, "");
  ASSERT_THAT(kfd.nodes, SizeIs(2));
  EXPECT_TRUE(kfd.nodes[0].is_cpu() && !kfd.nodes[0].is_gpu());
  const KfdNode& node = kfd.nodes[1];
  EXPECT_TRUE(node.is_gpu() && !node.is_cpu());
  EXPECT_EQ(node.gpu_id, 51110u);
  EXPECT_EQ(node.memory_bytes, 1500);
  EXPECT_EQ(node.memory_used_bytes, 70);
  ASSERT_THAT(node.links, SizeIs(2));
  EXPECT_TRUE(node.links[0].is_pcie() && node.links[0].to == 0 && node.links[0].max_mbps == 32000);
  EXPECT_TRUE(node.links[1].is_xgmi() && node.links[1].to == 2 && node.links[1].weight == 15u);
}

TEST(ReadKfd, SaysWhichNodesItCannotRead) {
  const MadeTree tree;
  tree.write(std::string(kNodes) + "0/properties", "simd_count 4\n");
  tree.make_folder(std::string(kNodes) + "1/properties");
  tree.make_folder(std::string(kNodes) + "2");
  tree.write(std::string(kNodes) + "3/properties", std::string(100'000, 'x'));
  const Kfd kfd = read_kfd(tree.path());
  EXPECT_THAT(kfd.nodes, SizeIs(1));
  EXPECT_THAT(kfd.reason, HasSubstr("3 of the driver's 4 nodes cannot be read: "));
  EXPECT_THAT(kfd.reason, HasSubstr("nodes/1/properties is not a regular file"));
}

TEST(ReadKfd, FindsNothingWhereThereIsNothing) {
  const MadeTree tree;
  EXPECT_THAT(read_kfd(tree.path()).nodes, IsEmpty());
}

}  // namespace
}  // namespace remuda::probe::amd
