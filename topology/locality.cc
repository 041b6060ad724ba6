#include "topology/locality.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

namespace remuda::topology {
namespace {

std::string_view name_of(const Item& item) { return item.device ? item.device->id : item.nic->name; }

std::vector<int> cores_of(const Item& item) {
  return item.device ? item.device->cores.value_or({}) : std::vector<int>{};
}

std::vector<Item> items_of(const Inventory& inventory) {
  std::vector<Item> items;
  for (const Device& device : inventory.devices)
    if (device.kind != DeviceKind::partition) items.push_back({.device = &device});
  for (const Nic& nic : inventory.nics) items.push_back({.nic = &nic});
  return items;
}

void read_paths(const Inventory& inventory, Locality& locality) {
  const size_t n = locality.items.size();
  std::unordered_map<std::string_view, size_t> positions;
  for (size_t i = 0; i < n; ++i) positions.emplace(name_of(locality.items[i]), i);
  locality.paths.assign(n, std::vector<std::optional<Path>>(n));
  for (const Link& link : inventory.links) {
    const auto a = positions.find(link.a), b = positions.find(link.b);
    if (a == positions.end() || b == positions.end() || !link.path.has_value()) continue;
    locality.paths[a->second][b->second] = locality.paths[b->second][a->second] = link.path.value();
  }
}

std::optional<int> node_of(const Item& item, const std::vector<NumaNode>& nodes) {
  const Reading<int>& stated = item.device ? item.device->numa_node : item.nic->numa_node;
  if (stated.has_value()) return stated.value();
  const std::vector<int> cores = cores_of(item);
  if (cores.empty()) return std::nullopt;
  for (const NumaNode& node : nodes) {
    const std::vector<int> all = node.cores.value_or({});
    const bool holds_all = std::all_of(cores.begin(), cores.end(),
                                       [&](int core) { return std::find(all.begin(), all.end(), core) != all.end(); });
    if (holds_all) return node.node;
  }
  return std::nullopt;
}

bool belong_together(const Locality& locality, size_t a, size_t b) {
  if (const auto path = locality.paths[a][b]; path && *path <= Path::node) return true;
  const std::vector<int> cores = cores_of(locality.items[a]);
  return !cores.empty() && cores == cores_of(locality.items[b]);
}

/// Hands each item that names no node the node of an item it belongs with, until nothing changes.
void spread(const Locality& locality, std::vector<std::optional<int>>& nodes) {
  std::vector<size_t> fresh(nodes.size());
  std::iota(fresh.begin(), fresh.end(), 0);
  while (!fresh.empty()) {
    const size_t from = fresh.back();
    fresh.pop_back();
    for (size_t to = 0; nodes[from] && to < nodes.size(); ++to) {
      if (nodes[to] || !belong_together(locality, from, to)) continue;
      nodes[to] = nodes[from];
      fresh.push_back(to);
    }
  }
}

void add_numbered_places(const Inventory& inventory, const std::vector<std::optional<int>>& nodes, Locality& locality) {
  std::map<int, Place> places;
  for (const NumaNode& node : inventory.numa)
    if (const std::vector<int> cores = node.cores.value_or({}); !cores.empty()) places[node.node].cores = cores;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i]) places[*nodes[i]].items.push_back(static_cast<int>(i));
  for (auto& [number, place] : places) {
    place.numa_node = number;
    locality.places.push_back(std::move(place));
  }
}

void add_nameless_places(const std::vector<std::optional<int>>& nodes, Locality& locality) {
  const size_t n = nodes.size();
  Groups groups(n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j)
      if (!nodes[i] && !nodes[j] && belong_together(locality, i, j))
        groups.join(static_cast<int>(i), static_cast<int>(j));
  std::map<int, Place> places;
  for (size_t i = 0; i < n; ++i)
    if (!nodes[i]) places[groups.root(static_cast<int>(i))].items.push_back(static_cast<int>(i));
  for (auto& [root, place] : places)
    if (place.items.size() > 1 || !cores_of(locality.items[root]).empty()) locality.places.push_back(std::move(place));
}

}  // namespace

Groups::Groups(size_t size) : parents_(size) { std::iota(parents_.begin(), parents_.end(), 0); }

int Groups::root(int element) const {
  while (parents_[element] != element) element = parents_[element];
  return element;
}

void Groups::join(int a, int b) {
  const auto [low, high] = std::minmax({root(a), root(b)});
  parents_[high] = low;
}

Locality locate(const Inventory& inventory) {
  Locality locality{.items = items_of(inventory)};
  read_paths(inventory, locality);
  std::vector<std::optional<int>> nodes;
  for (const Item& item : locality.items) nodes.push_back(node_of(item, inventory.numa));
  spread(locality, nodes);
  add_numbered_places(inventory, nodes, locality);
  add_nameless_places(nodes, locality);
  for (Place& place : locality.places)
    for (size_t i = 0; place.cores.empty() && i < place.items.size(); ++i)
      place.cores = cores_of(locality.items[place.items[i]]);
  return locality;
}

}  // namespace remuda::topology
