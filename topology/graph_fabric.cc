#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <unordered_map>

#include "topology/graph.h"
#include "topology/label.h"
#include "topology/locality.h"

namespace remuda::topology {
namespace {

/// No GPU has more links: the bound of the driver's own interface.
constexpr size_t kMostLinks = 36;

struct FabricLink {
  size_t a = 0, b = 0;  ///< positions in the matrix
  const Link* link = nullptr;
  const PairSpeed* speed = nullptr;
};

std::vector<FabricLink> fabric_links(const Matrix& matrix, const Inventory& inventory) {
  std::unordered_map<std::string_view, size_t> positions;
  for (size_t i = 0; i < matrix.devices.size(); ++i) positions.emplace(matrix.devices[i]->id, i);
  std::vector<FabricLink> links;
  for (const Link& link : inventory.links) {
    const auto a = positions.find(link.a), b = positions.find(link.b);
    if (link.fabric.value_or(Fabric::none) == Fabric::none || a == positions.end() || b == positions.end()) continue;
    const auto& speed = matrix.pairs[a->second][b->second].speed;
    if (speed && a != b)
      links.push_back({std::min(a->second, b->second), std::max(a->second, b->second), &link, &*speed});
  }
  std::sort(links.begin(), links.end(),
            [](const FabricLink& x, const FabricLink& y) { return std::pair(x.a, x.b) < std::pair(y.a, y.b); });
  return links;
}

/// All GPUs joined pair by pair with as many links: too many to be direct ones.
bool must_be_switched(const std::vector<FabricLink>& links, size_t gpus) {
  const int count = links.front().link->fabric_links.value_or(0);
  const bool is_even = std::all_of(links.begin(), links.end(), [&](const FabricLink& link) {
    return link.link->fabric_links.value_or(0) == count && link.link->fabric.value() == Fabric::nvlink;
  });
  return is_even && count > 0 && links.size() == gpus * (gpus - 1) / 2 && (gpus - 1) * count > kMostLinks;
}

bool is_switched(const std::vector<FabricLink>& links, size_t gpus) {
  const bool is_stated = std::all_of(links.begin(), links.end(),
                                     [](const FabricLink& link) { return link.link->fabric_switched.value_or(false); });
  return is_stated || must_be_switched(links, gpus);
}

class FabricBuilder {
 public:
  FabricBuilder(const Matrix& matrix, Graph& graph) : graph_(graph) {
    for (const Device* device : matrix.devices)
      for (size_t node = 0; node < graph.nodes.size(); ++node)
        if (graph.nodes[node].device == device) nodes_.push_back(static_cast<int>(node));
  }

  void add_direct(const FabricLink& link) {
    graph_.edges.push_back({std::min(nodes_[link.a], nodes_[link.b]), std::max(nodes_[link.a], nodes_[link.b]),
                            link.link->fabric.value(), link_label(*link.link), *link.speed});
  }

  void add_switch(const std::vector<FabricLink>& links) {
    const Fabric fabric = links.front().link->fabric.value();
    const int position = static_cast<int>(graph_.nodes.size());
    graph_.nodes.push_back({.kind = NodeKind::fabric_switch,
                            .id = fmt::format("fabric:{}", switches_++),
                            .name = fabric == Fabric::nvlink ? "NVLink switch" : "xGMI switch"});
    std::map<size_t, const FabricLink*> slowest;
    for (const FabricLink& link : links)
      for (const size_t end : {link.a, link.b})
        if (auto& worst = slowest[end]; !worst || link.speed->gbps < worst->speed->gbps) worst = &link;
    for (const auto& [gpu, link] : slowest)
      graph_.edges.push_back({nodes_[gpu], position, fabric, link_label(*link->link), *link->speed});
  }

 private:
  Graph& graph_;
  std::vector<int> nodes_;  ///< of each device of the matrix
  int switches_ = 0;
};

}  // namespace

void add_fabric(const Matrix& matrix, const Inventory& inventory, Graph& graph) {
  const std::vector<FabricLink> links = fabric_links(matrix, inventory);
  Groups groups(matrix.devices.size());
  for (const FabricLink& link : links) groups.join(static_cast<int>(link.a), static_cast<int>(link.b));
  std::map<int, std::vector<FabricLink>> islands;
  for (const FabricLink& link : links) islands[groups.root(static_cast<int>(link.a))].push_back(link);
  FabricBuilder builder(matrix, graph);
  for (const auto& [root, island] : islands) {
    size_t gpus = 0;
    for (size_t i = 0; i < matrix.devices.size(); ++i) gpus += groups.root(static_cast<int>(i)) == root ? 1 : 0;
    if (is_switched(island, gpus)) {
      builder.add_switch(island);
      continue;
    }
    for (const FabricLink& link : island) builder.add_direct(link);
  }
}

}  // namespace remuda::topology
