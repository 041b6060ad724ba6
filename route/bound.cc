#include "route/bound.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>

#include "topology/locality.h"

namespace remuda::route {
namespace {

constexpr double kBytesPerGb = 1e9;
constexpr double kSameLevel = 0.95;  // speeds that differ by less are one level: measurements scatter

bool is_known(const Network& network) {
  for (size_t from = 0; from < network.size(); ++from)
    for (size_t to = 0; to < network.size(); ++to)
      if (from != to && network.routes[from][to].gbps <= 0) return false;
  return true;
}

/// GB/s that all devices together can send, and receive: over the first, and the last, channels of their routes.
double own_gbps(const Network& network) {
  std::set<size_t> first, last;
  for (size_t from = 0; from < network.size(); ++from)
    for (size_t to = 0; to < network.size(); ++to) {
      if (from == to) continue;
      first.insert(network.routes[from][to].channels.front());
      last.insert(network.routes[from][to].channels.back());
    }
  const auto sum = [&](const std::set<size_t>& channels) {
    double gbps = 0;
    for (const size_t channel : channels) gbps += network.channels[channel].gbps;
    return gbps;
  };
  return std::min(sum(first), sum(last));
}

/// GB/s from some devices to the others, at most: what channels carry that all routes pass one of. Always the channel
/// next that most of the routes left pass, so these channels need not be the best.
double cut_gbps(const Network& network, const std::vector<bool>& inside) {
  std::vector<const Route*> left;
  for (size_t from = 0; from < network.size(); ++from)
    for (size_t to = 0; to < network.size(); ++to)
      if (inside[from] && !inside[to]) left.push_back(&network.routes[from][to]);
  double gbps = 0;
  while (!left.empty()) {
    std::vector<size_t> uses(network.channels.size(), 0);
    for (const Route* route : left)
      for (const size_t channel : route->channels) ++uses[channel];
    const auto cheaper = [&](size_t a, size_t b) {
      return uses[a] * network.channels[b].gbps < uses[b] * network.channels[a].gbps;
    };
    size_t best = left.front()->channels.front();
    for (size_t channel = 0; channel < uses.size(); ++channel)
      if (uses[channel] > 0 && cheaper(best, channel)) best = channel;
    gbps += network.channels[best].gbps;
    std::erase_if(
        left, [&](const Route* route) { return std::ranges::find(route->channels, best) != route->channels.end(); });
  }
  return gbps;
}

std::vector<bool> mask_of(const std::vector<size_t>& members, size_t size, bool inside) {
  std::vector<bool> mask(size, !inside);
  for (const size_t member : members) mask[member] = inside;
  return mask;
}

}  // namespace

Cost least_cost(const Network& network) {
  const size_t n = network.size();
  if (n < 2 || !is_known(network)) return {};
  Cost least{.latency_s = std::numeric_limits<double>::infinity()};
  for (size_t from = 0; from < n; ++from)
    for (size_t to = 0; to < n; ++to)
      if (from != to) least.latency_s = std::min(least.latency_s, network.routes[from][to].latency_us * 1e-6);
  least.s_per_byte = 2.0 * static_cast<double>(n - 1) / (own_gbps(network) * kBytesPerGb);
  std::vector<std::vector<size_t>> sets;
  for (size_t device = 0; device < n; ++device) sets.push_back({device});
  for (const auto& partition : island_partitions(network)) sets.insert(sets.end(), partition.begin(), partition.end());
  for (const auto& set : sets)
    for (const bool inside : {true, false})
      least.s_per_byte = std::max(least.s_per_byte, 1 / (cut_gbps(network, mask_of(set, n, inside)) * kBytesPerGb));
  return least;
}

double least_seconds(const Cost& least, double bytes) { return std::max(least.latency_s, least.s_per_byte * bytes); }

std::vector<std::vector<std::vector<size_t>>> island_partitions(const Network& network) {
  const size_t n = network.size();
  std::set<double, std::greater<>> speeds;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) speeds.insert(network.routes[i][j].gbps);
  std::vector<std::vector<std::vector<size_t>>> partitions;
  for (auto at = speeds.begin(); at != speeds.end(); ++at) {
    const double speed = *at;
    if (const auto next = std::next(at); next != speeds.end() && *next > kSameLevel * speed) continue;
    topology::Groups groups(n);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < i; ++j)
        if (speed > 0 && network.routes[i][j].gbps >= speed) groups.join(static_cast<int>(i), static_cast<int>(j));
    std::vector<std::vector<size_t>> islands(n);
    for (size_t i = 0; i < n; ++i) islands[static_cast<size_t>(groups.root(static_cast<int>(i)))].push_back(i);
    std::erase_if(islands, [](const auto& island) { return island.empty(); });
    if (islands.size() < 2 || islands.size() == n) continue;
    if (partitions.empty() || partitions.back() != islands) partitions.push_back(std::move(islands));
  }
  return partitions;
}

std::vector<size_t> nested_order(const Network& network) {
  std::vector<size_t> order(network.size()), island_of(network.size());
  std::iota(order.begin(), order.end(), 0);
  // The last sort counts most, and the widest islands come last.
  for (const auto& partition : island_partitions(network)) {
    for (size_t island = 0; island < partition.size(); ++island)
      for (const size_t device : partition[island]) island_of[device] = island;
    std::ranges::stable_sort(order, {}, [&](size_t device) { return island_of[device]; });
  }
  return order;
}

}  // namespace remuda::route
