#include "topology/graph.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/testing/machines.h"

namespace remuda::topology {
namespace {

using testing::ElementsAre;

/// The tree below a node, as in "numa:0(switch:0(gpu:0 nic0) gpu:1)".
std::string outline(const Graph& graph, int node = 0) {
  const GraphNode& at = graph.nodes[node];
  std::string name = at.device || at.kind == NodeKind::nic ? at.name : at.id;
  if (at.children.empty()) return name;
  std::string inner;
  for (const int child : at.children) inner += (inner.empty() ? "" : " ") + outline(graph, child);
  return fmt::format("{}({})", name, inner);
}

std::vector<std::string> edges(const Graph& graph) {
  std::vector<std::string> found;
  for (const GraphEdge& edge : graph.edges)
    found.push_back(fmt::format("{}-{} {} {:g}", graph.nodes[edge.a].name, graph.nodes[edge.b].name, edge.label,
                                edge.speed ? edge.speed->gbps : 0));
  return found;
}

const GraphNode& node(const Graph& graph, const std::string& id) {
  for (const GraphNode& candidate : graph.nodes)
    if (candidate.id == id) return candidate;
  ADD_FAILURE() << "no node " << id;
  return graph.nodes[0];
}

TEST(Graph, InfersSwitchesAndBridgesOfACubeMesh) {
  const Inventory inventory = cube_mesh();
  const Graph graph = make_graph(inventory);
  EXPECT_EQ(outline(graph),
            "host(place:0(bridge:0(switch:0(gpu:0 gpu:1 mlx5_0) switch:1(gpu:2 gpu:3 mlx5_1))) "
            "place:1(bridge:1(switch:2(gpu:4 gpu:5 mlx5_2) switch:3(gpu:6 gpu:7 mlx5_3))))");
  EXPECT_EQ(node(graph, "place:0").name, "CPUs 0-19");
  EXPECT_EQ(graph.edges.size(), 16U);
  EXPECT_EQ(edges(graph)[0], "gpu:0-gpu:1 NV1 25");
}

TEST(Graph, SaysWhatGoesThroughEachNode) {
  const Inventory inventory = test_machine(R"(
    X   PIX PHB SYS | numa=0
    PIX X   PHB SYS | numa=0
    PHB PHB X   SYS | numa=0
    SYS SYS SYS X   | numa=1)");
  const Graph graph = make_graph(inventory);
  EXPECT_EQ(outline(graph), "host(numa:0(bridge:0(switch:0(gpu:0 gpu:1) gpu:2)) numa:1(gpu:3))");
  EXPECT_EQ(node(graph, "switch:0").crossing->label, "PIX");
  EXPECT_EQ(node(graph, "switch:0").crossing->low_gbps, 24);
  EXPECT_EQ(node(graph, "bridge:0").crossing->label, "PHB");
  EXPECT_EQ(node(graph, "host").crossing->high_gbps, 10);
  EXPECT_FALSE(node(graph, "numa:0").crossing) << "nothing turns round there";
}

TEST(Graph, ACrossingIsMeasuredWhenAllOfItIs) {
  Inventory inventory = test_machine("X PIX PIX | numa=0\nPIX X PIX | numa=0\nPIX PIX X | numa=0");
  measure(inventory, "GPU-0", "GPU-1", 21);
  EXPECT_FALSE(node(make_graph(inventory), "switch:0").crossing->measured);
  measure(inventory, "GPU-0", "GPU-2", 20);
  measure(inventory, "GPU-1", "GPU-2", 22);
  const Graph graph = make_graph(inventory);
  EXPECT_TRUE(node(graph, "switch:0").crossing->measured);
  EXPECT_EQ(node(graph, "switch:0").crossing->low_gbps, 20);
  EXPECT_EQ(node(graph, "switch:0").crossing->high_gbps, 22);
}

TEST(Graph, SwitchesOfSwitchesAreATierOfTheirOwn) {
  const Inventory inventory = test_machine(R"(
    X   PIX PXB PXB | numa=0
    PIX X   PXB PXB | numa=0
    PXB PXB X   PIX | numa=0
    PXB PXB PIX X   | numa=0)");
  EXPECT_EQ(outline(make_graph(inventory)), "host(numa:0(switch:0(switch:1(gpu:0 gpu:1) switch:2(gpu:2 gpu:3))))");
}

TEST(Graph, TooManyLinksMeanASwitch) {
  const Inventory inventory = switched();
  const Graph graph = make_graph(inventory);
  EXPECT_EQ(graph.edges.size(), 8U);
  EXPECT_EQ(edges(graph)[7], "gpu:7-NVLink switch NV18 450");
  EXPECT_EQ(node(graph, "fabric:0").parent, -1);
  EXPECT_EQ(node(graph, "numa:0").children.size(), 4U);
}

TEST(Graph, AFullMeshOfFewLinksIsDirect) {
  const Inventory inventory = test_machine("X NV4 NV4 NV4\nNV4 X NV4 NV4\nNV4 NV4 X NV4\nNV4 NV4 NV4 X");
  EXPECT_EQ(make_graph(inventory).edges.size(), 6U);
}

TEST(Graph, ASwitchIsBelievedWhenTheDriverSaysSo) {
  Inventory inventory = pairs();
  inventory.links[0].fabric_switched = true;
  EXPECT_THAT(edges(make_graph(inventory)),
              ElementsAre("gpu:0-NVLink switch NV12 300", "gpu:1-NVLink switch NV12 300", "gpu:2-gpu:3 NV12 300"));
}

TEST(Graph, IslandsHaveASwitchEach) {
  const Inventory inventory = test_machine(R"(
    X    NV18 NV18 SYS  SYS  SYS
    NV18 X    NV18 SYS  SYS  SYS
    NV18 NV18 X    SYS  SYS  SYS
    SYS  SYS  SYS  X    NV20 NV20
    SYS  SYS  SYS  NV20 X    NV20
    SYS  SYS  SYS  NV20 NV20 X)");
  EXPECT_EQ(edges(make_graph(inventory)).size(), 3U + 3U) << "18 links to each of 2 peers can be direct";
  EXPECT_EQ(edges(make_graph(inventory))[3], "gpu:3-NVLink switch NV20 500");
}

TEST(Graph, APartitionedGpuHasNoDirectLinks) {
  Inventory inventory = pairs();
  inventory.devices[0].partitioned = true;
  EXPECT_THAT(edges(make_graph(inventory)), ElementsAre("gpu:2-gpu:3 NV12 300"));
}

TEST(Graph, DevicesWithoutAPlaceStandAlone) {
  const Inventory inventory = test_machine("X PCIE\nPCIE X");
  EXPECT_EQ(outline(make_graph(inventory)), "host(gpu:0 gpu:1)");
  EXPECT_EQ(make_graph(inventory).nodes[0].crossing->label, "PCIE");
}

TEST(Graph, ADeviceWithoutANumaNodeJoinsItsNeighbours) {
  Inventory inventory = test_machine("X NODE SYS | numa=0\nNODE X SYS\nSYS SYS X");
  EXPECT_EQ(outline(make_graph(inventory)), "host(numa:0(gpu:0 gpu:1) gpu:2)");
  inventory.devices[2].cores = std::vector{8, 9};
  inventory.numa = {{.node = 1, .cores = std::vector{8, 9, 10}, .memory_bytes = int64_t{1} << 30}};
  const Graph graph = make_graph(inventory);
  EXPECT_EQ(outline(graph), "host(numa:0(gpu:0 gpu:1) numa:1(gpu:2))");
  EXPECT_EQ(node(graph, "numa:1").memory_bytes.value(), int64_t{1} << 30);
}

TEST(Graph, NumaNodesWithoutDevicesAreShown) {
  Inventory inventory = two_sockets();
  inventory.devices.pop_back();
  inventory.numa.push_back({.node = 2});
  EXPECT_EQ(outline(make_graph(inventory)), "host(numa:0(cpu:0) numa:1)") << "node 2 has no cores";
}

TEST(Graph, OfAMachineWithoutDevicesIsItsHost) {
  const Inventory inventory{.host = "host1"};
  const Graph graph = make_graph(inventory);
  EXPECT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].name, "host1");
}

}  // namespace
}  // namespace remuda::topology
