#include "topology/label.h"

#include <gtest/gtest.h>

namespace remuda::topology {
namespace {

TEST(LinkLabel, NamesDirectLinksBeforeThePath) {
  Link link{.a = "a", .b = "b", .path = Path::sys, .fabric = Fabric::nvlink, .fabric_links = 12};
  EXPECT_EQ(link_label(link), "NV12");
  link.fabric = Fabric::xgmi;
  EXPECT_EQ(link_label(link), "XG12");
  link.fabric = Fabric::none;
  EXPECT_EQ(link_label(link), "SYS");
}

TEST(LinkLabel, SaysWhenTheNumberOfLinksIsNotKnown) {
  EXPECT_EQ(link_label({.a = "a", .b = "b", .fabric = Fabric::xgmi}), "XGMI");
  EXPECT_EQ(link_label({.a = "a", .b = "b", .fabric = Fabric::nvlink, .fabric_links = 0}), "NVLINK");
}

TEST(LinkLabel, KeepsTheSourcesOwnWord) {
  EXPECT_EQ(link_label({.a = "a", .b = "b", .path = Path::node, .label = "SOC"}), "SOC");
}

TEST(LinkLabel, UsesTheWordOfEachPath) {
  for (const auto& [path, word] : Words<Path>::table) EXPECT_EQ(link_label({.a = "a", .b = "b", .path = path}), word);
  EXPECT_EQ(link_label({.a = "a", .b = "b"}), "?");
  EXPECT_EQ(link_label({.a = "a", .b = "b", .path = Missing{MissingReason::denied, "not allowed"}}), "?");
}

TEST(PairLabel, TellsCpuDevicesApartByNumaNode) {
  const Device a{.id = "cpu:0", .numa_node = 0}, b{.id = "cpu:1", .numa_node = 1}, c{.id = "cpu:2", .numa_node = 1};
  EXPECT_EQ(pair_label(a, b, nullptr), "SYS");
  EXPECT_EQ(pair_label(b, c, nullptr), "NODE");
  EXPECT_EQ(pair_label(a, a, nullptr), "X");
  EXPECT_EQ(pair_label(a, {.id = "cpu:3"}, nullptr), "?");
  EXPECT_EQ(pair_label({.id = "g", .kind = DeviceKind::gpu, .numa_node = 0}, a, nullptr), "?");
}

}  // namespace
}  // namespace remuda::topology
