#include "topology/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/env.h"
#include "base/file.h"
#include "topology/testing/machines.h"

namespace remuda::topology {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string drawn(const Inventory& inventory) {
  const auto svg = topology_svg(make_graph(inventory));
  EXPECT_TRUE(svg);
  return svg.value_or("");
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Every tag that opens also closes, in order.
bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at)) {
    const size_t end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1), name = tag.substr(0, tag.find_first_of(" \n"));
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty();
}

/// Set REMUDA_UPDATE_GOLDEN=1 to write the files anew.
void expect_golden(const std::string& name, const std::string& svg) {
  const std::string path = std::string(REMUDA_TOPOLOGY_TESTDATA) + "/" + name;
  if (env::get(env::update_golden) == "1") {
    auto file = PendingFile::create(path);
    ASSERT_TRUE(file && file->commit(svg));
  }
  const auto golden = read_text(path);
  ASSERT_TRUE(golden) << golden.error().message;
  EXPECT_TRUE(*golden == svg) << path << " differs; run with REMUDA_UPDATE_GOLDEN=1 and look at the picture";
}

TEST(TopologySvg, OfACubeMeshIsAsBefore) { expect_golden("cube_mesh.svg", drawn(cube_mesh())); }
TEST(TopologySvg, OfASwitchedMachineIsAsBefore) { expect_golden("switched.svg", drawn(switched())); }

TEST(TopologySvg, IsWellFormed) {
  for (const Inventory& inventory : {cube_mesh(), switched(), pairs(), two_sockets(), Inventory{}})
    EXPECT_TRUE(is_well_formed(drawn(inventory)));
}

TEST(TopologySvg, DrawsEachDeviceAndLinkOnce) {
  const std::string svg = drawn(cube_mesh());
  EXPECT_EQ(count(svg, "class=\"card\""), 8U);
  EXPECT_EQ(count(svg, "class=\"nic\""), 4U);
  EXPECT_EQ(count(svg, "class=\"place\""), 2U);
  EXPECT_EQ(count(svg, "<path class=\"link"), 16U + 2U) << "two of them are samples in the legend";
  EXPECT_THAT(svg, HasSubstr("gpu:0 - gpu:3, NV2: 2 NVLink links, 25 GB/s each (assumed)"));
}

TEST(TopologySvg, FasterLinksAreWider) {
  const std::string svg = drawn(cube_mesh());
  EXPECT_THAT(svg, HasSubstr("<path class=\"link f0\" stroke-width=\"5\""));
  EXPECT_THAT(svg, HasSubstr("<path class=\"link f1\" stroke-width=\"2.5\""));
}

TEST(TopologySvg, MarksWhatWasMeasured) {
  Inventory inventory = pairs();
  EXPECT_THAT(drawn(inventory), Not(HasSubstr("GB/s*")));
  measure(inventory, "GPU-0", "GPU-1", 271.2);
  EXPECT_THAT(drawn(inventory), HasSubstr("NV12 · 271 GB/s*"));
  EXPECT_THAT(drawn(inventory), HasSubstr("* measured, others assumed"));
}

TEST(TopologySvg, ShowsCpuDevicesWhereThereIsNoGpu) {
  Inventory inventory = two_sockets();
  EXPECT_EQ(count(drawn(inventory), "class=\"card\""), 2U);
  inventory.devices.push_back({.id = "GPU-0", .kind = DeviceKind::gpu, .numa_node = 0});
  EXPECT_EQ(count(drawn(inventory), "class=\"card\""), 1U);
}

TEST(TopologySvg, HostileNamesStayText) {
  Inventory inventory = pairs();
  inventory.host = "</title><script>alert(1)</script>";
  inventory.devices[0].model = "\"><image href='x' onerror='alert(1)'/>" + std::string(5000, 'W');
  inventory.devices[1].model = "\x1b]0;pwned\x07\xff\xfe";
  inventory.links[0].label = "<b>&";
  inventory.nics.push_back({.name = "<!--"});
  const std::string svg = drawn(inventory);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("<image")));
  EXPECT_THAT(svg, Not(HasSubstr("<!--")));
  EXPECT_EQ(svg.find('\x1b'), std::string::npos);
}

TEST(TopologySvg, HasABound) {
  Inventory inventory{.host = "host1"};
  for (int i = 0; i < 65; ++i)
    inventory.devices.push_back({.id = std::to_string(i), .kind = DeviceKind::gpu, .index = i});
  const auto svg = topology_svg(make_graph(inventory));
  ASSERT_FALSE(svg);
  EXPECT_EQ(svg.error().message, "the picture has room for 64 devices and network cards, this machine has 65");
  inventory.devices.pop_back();
  EXPECT_TRUE(topology_svg(make_graph(inventory)));
}

}  // namespace
}  // namespace remuda::topology
