#include "topology/graph.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "topology/locality.h"

namespace remuda::topology {
namespace {

class Tree {
 public:
  Tree(const Inventory& inventory, Graph& graph) : inventory_(inventory), graph_(graph), locality_(locate(inventory)) {}

  void grow() {
    graph_.nodes.push_back({.kind = NodeKind::host, .id = "host", .name = inventory_.host});
    std::vector<bool> placed(locality_.items.size(), false);
    for (const Place& place : locality_.places) {
      hang(place.items, add_place(place), kTiers.size());
      for (const int item : place.items) placed[item] = true;
    }
    for (size_t item = 0; item < placed.size(); ++item)
      if (!placed[item]) add_leaf(static_cast<int>(item), 0);
  }

 private:
  struct Tier {
    Path farthest;
    NodeKind kind;
    const char* name;
  };
  static constexpr std::array<Tier, 3> kTiers{Tier{Path::pix, NodeKind::pcie_switch, "PCIe switch"},
                                              Tier{Path::pxb, NodeKind::pcie_switch, "PCIe switches"},
                                              Tier{Path::phb, NodeKind::bridge, "PCIe host bridge"}};

  int add(GraphNode node) {
    const int position = static_cast<int>(graph_.nodes.size());
    graph_.nodes[node.parent].children.push_back(position);
    graph_.nodes.push_back(std::move(node));
    return position;
  }

  int add_place(const Place& place) {
    GraphNode node{.kind = NodeKind::numa, .id = fmt::format("place:{}", places_++), .parent = 0, .cores = place.cores};
    if (!place.numa_node) {
      node.name = place.cores.empty() ? "NUMA node not known" : fmt::format("CPUs {}", index_ranges(place.cores));
      return add(std::move(node));
    }
    node.id = fmt::format("numa:{}", *place.numa_node);
    node.name = fmt::format("NUMA node {}", *place.numa_node);
    for (const NumaNode& known : inventory_.numa)
      if (known.node == *place.numa_node) node.memory_bytes = known.memory_bytes;
    return add(std::move(node));
  }

  void add_leaf(int item, int parent) {
    const auto [device, nic] = locality_.items[item];
    if (nic) {
      add({.kind = NodeKind::nic, .id = nic->name, .name = nic->name, .parent = parent});
      return;
    }
    const NodeKind kind = device->kind == DeviceKind::gpu ? NodeKind::gpu : NodeKind::cpu;
    add({.kind = kind, .id = device->id, .name = device->label(), .parent = parent, .device = device});
  }

  /// Hangs `items` below `parent`, gathered by the tiers up to `tier`; a tier that gathers nothing says nothing.
  void hang(const std::vector<int>& items, int parent, size_t tier) {
    if (tier == 0) {
      for (const int item : items) add_leaf(item, parent);
      return;
    }
    for (const std::vector<int>& group : gather(items, tier)) {
      const bool joins_several = gather(group, tier - 1).size() > 1;
      hang(group, joins_several ? add_inner(kTiers[tier - 1], parent) : parent, tier - 1);
    }
  }

  int add_inner(const Tier& tier, int parent) {
    const bool is_bridge = tier.kind == NodeKind::bridge;
    const std::string id = is_bridge ? fmt::format("bridge:{}", bridges_++) : fmt::format("switch:{}", switches_++);
    return add({.kind = tier.kind, .id = id, .name = tier.name, .parent = parent});
  }

  /// What the tier joins; at tier 0 each item stands alone.
  std::vector<std::vector<int>> gather(const std::vector<int>& items, size_t tier) const {
    Groups groups(items.size());
    for (size_t i = 0; tier > 0 && i < items.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (const auto path = locality_.paths[items[i]][items[j]]; path && *path <= kTiers[tier - 1].farthest)
          groups.join(static_cast<int>(i), static_cast<int>(j));
    std::map<int, std::vector<int>> gathered;
    for (size_t i = 0; i < items.size(); ++i) gathered[groups.root(static_cast<int>(i))].push_back(items[i]);
    std::vector<std::vector<int>> result;
    for (auto& [root, group] : gathered) result.push_back(std::move(group));
    return result;
  }

  const Inventory& inventory_;
  Graph& graph_;
  const Locality locality_;
  int places_ = 0, bridges_ = 0, switches_ = 0;
};

std::vector<int> way_up(const Graph& graph, int node) {
  std::vector<int> way;
  for (; node >= 0; node = graph.nodes[node].parent) way.push_back(node);
  return way;
}

int meeting_point(const Graph& graph, int a, int b) {
  const std::vector<int> way = way_up(graph, a);
  while (std::find(way.begin(), way.end(), b) == way.end()) b = graph.nodes[b].parent;
  return b;
}

void add_crossing(GraphNode& node, const Matrix::Pair& pair) {
  const PairSpeed& speed = *pair.speed;
  if (!node.crossing) {
    node.crossing = {pair.label, speed.gbps, speed.gbps, speed.measured};
    return;
  }
  auto& [label, low, high, measured] = *node.crossing;
  if (speed.gbps < low) label = pair.label;
  low = std::min(low, speed.gbps);
  high = std::max(high, speed.gbps);
  measured = measured && speed.measured;
}

void add_crossings(const Matrix& matrix, const Inventory& inventory, Graph& graph) {
  std::unordered_map<const Device*, int> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) nodes[graph.nodes[i].device] = static_cast<int>(i);
  std::set<std::pair<std::string_view, std::string_view>> direct;
  for (const Link& link : inventory.links)
    if (link.fabric.value_or(Fabric::none) != Fabric::none)
      direct.insert(std::minmax<std::string_view>(link.a, link.b));
  for (size_t i = 0; i < matrix.devices.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const Device *a = matrix.devices[i], *b = matrix.devices[j];
      if (!matrix.pairs[i][j].speed || direct.contains(std::minmax<std::string_view>(a->id, b->id))) continue;
      add_crossing(graph.nodes[meeting_point(graph, nodes[a], nodes[b])], matrix.pairs[i][j]);
    }
}

}  // namespace

Graph make_graph(const Inventory& inventory) {
  Graph graph;
  Tree(inventory, graph).grow();
  const Matrix matrix = make_matrix(inventory);
  add_crossings(matrix, inventory, graph);
  add_fabric(matrix, inventory, graph);
  return graph;
}

}  // namespace remuda::topology
