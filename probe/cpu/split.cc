#include "probe/cpu/split.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace remuda::probe::cpu {
namespace {

/// One core, and its node.
struct Place {
  const Node* node;
  const Core* core;
};

std::vector<Place> places_of(const Node& node) {
  std::vector<Place> places;
  for (const Core& core : node.cores) places.push_back({&node, &core});
  return places;
}

/// One set for each node, then one more for the node whose sets are the largest, until there are `devices` sets.
std::vector<int> sets_per_node(const std::vector<Node>& nodes, int devices) {
  std::vector<int> sets(nodes.size(), 1);
  for (int given = static_cast<int>(nodes.size()); given < devices; ++given) {
    size_t largest = 0;
    for (size_t n = 1; n < nodes.size(); ++n)
      if (nodes[n].cores.size() * sets[largest] > nodes[largest].cores.size() * sets[n]) largest = n;
    ++sets[largest];
  }
  return sets;
}

std::optional<int64_t> memory_of(const std::vector<Place>& places) {
  double bytes = 0;
  for (const Place& place : places) {
    if (!place.node->memory_bytes) return std::nullopt;
    bytes += static_cast<double>(*place.node->memory_bytes) / static_cast<double>(place.node->cores.size());
  }
  return std::llround(bytes);
}

CoreSet make_set(const std::vector<Place>& places) {
  CoreSet set{.memory_bytes = memory_of(places)};
  for (const Place& place : places) {
    set.pus.insert(set.pus.end(), place.core->begin(), place.core->end());
    if (set.numa_nodes.empty() || set.numa_nodes.back() != place.node->numa_node)
      set.numa_nodes.push_back(place.node->numa_node);
  }
  std::ranges::sort(set.pus);
  return set;
}

/// Cuts a row of cores into `count` runs whose lengths differ by at most one, longer ones first.
void cut(const std::vector<Place>& places, int count, std::vector<CoreSet>& sets) {
  const size_t length = places.size() / count, longer = places.size() % count;
  auto from = places.begin();
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const auto to = from + static_cast<ptrdiff_t>(length + (i < longer ? 1 : 0));
    sets.push_back(make_set({from, to}));
    from = to;
  }
}

}  // namespace

Result<std::vector<CoreSet>> split_cores(const std::vector<Node>& nodes, int devices) {
  const int node_count = static_cast<int>(nodes.size());
  std::vector<Place> all;
  for (const Node& node : nodes) std::ranges::copy(places_of(node), std::back_inserter(all));
  if (devices < 0 || devices > static_cast<int>(all.size()))
    return usage_error(
        fmt::format("{} CPU devices are not possible: this process may use {} core{}, which can be split "
                    "into at most {} CPU device{}",
                    devices, all.size(), all.size() == 1 ? "" : "s", all.size(), all.size() == 1 ? "" : "s"));
  const int count = devices == 0 ? node_count : devices;
  std::vector<CoreSet> sets;
  if (count % node_count != 0) {
    cut(all, count, sets);
    return sets;
  }
  const std::vector<int> per_node = sets_per_node(nodes, count);
  for (int n = 0; n < node_count; ++n) cut(places_of(nodes[n]), per_node[n], sets);
  return sets;
}

}  // namespace remuda::probe::cpu
