#include "route/plan.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "route/bound.h"
#include "topology/bottleneck.h"

namespace remuda::route {
namespace {

constexpr double kLess = 1 - 1e-9;  // of two times that differ by rounding, none is less

constexpr double kSame = 1e-6;  // shares of the time that differ by less are equal

/// The order of the ring whose slowest link is fastest.
std::vector<Order> ring_orders(const Network& network) {
  const size_t n = network.size();
  if (n > topology::RingTable::kMaxDevices) return {};
  topology::Speeds speeds(n, std::vector<double>(n, 0));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) speeds[i][j] = speeds[j][i] = network.routes[i][j].gbps;
  const auto ring = topology::RingTable(speeds).ring((topology::RingTable::Mask{1} << n) - 1);
  return ring ? std::vector<Order>{ring->order} : std::vector<Order>{};
}

/// The links that hold a round's longest transfers back, each with one of its channels.
std::map<std::string, size_t> waited_for(const Network& network, const Round& round) {
  std::map<std::string, size_t> links;
  for (const Transfer& transfer : round.transfers) {
    const Route& route = network.routes[transfer.from][transfer.to];
    if ((transfer.end - transfer.begin) / (route.gbps * 1e9) < round.cost.s_per_byte * kLess) continue;
    const auto gbps = [&](size_t channel) { return network.channels[channel].gbps; };
    const double least = gbps(*std::ranges::min_element(route.channels, {}, gbps));
    for (const size_t channel : route.channels)
      if (gbps(channel) * kLess <= least) links.emplace(network.channels[channel].name, channel);
  }
  return links;
}

class Planner {
 public:
  explicit Planner(Network network) { plan_.network = std::move(network); }

  Plan make() {
    const size_t n = plan_.network.size();
    const Order start = index_order(plan_.network.size());
    std::vector<Order> others = ring_orders(plan_.network);
    if (Order nested = nested_order(plan_.network); nested != start) others.push_back(std::move(nested));
    plan_.exact = true;
    for (const auto& make : {doubling, tree, direct, halving, ring}) consider(make(n), {}, start, others);
    if (n > 2) consider(two_rings(n), {}, start, others);
    for (const auto& partition : island_partitions(plan_.network)) consider_islands(partition);
    plan_.index_ring = Pricer(plan_.network, ring(n)).cost(start);
    plan_.least = least_cost(plan_.network);
    find_ranges();
    return std::move(plan_);
  }

 private:
  void consider_islands(const std::vector<std::vector<size_t>>& partition) {
    Order order;
    std::vector<size_t> sizes;
    for (const auto& island : partition) {
      order.insert(order.end(), island.begin(), island.end());
      sizes.push_back(island.size());
    }
    consider(islands(sizes), sizes, order, {});
    if (sizes.front() > 2 && std::ranges::count(sizes, sizes.front()) == std::ssize(sizes))
      consider(island_rings(sizes), sizes, order, {});
  }

  void consider(const Pattern& pattern, const std::vector<size_t>& island_sizes, const Order& start,
                const std::vector<Order>& others) {
    SearchResult result = best_orders(plan_.network, pattern, start, others);
    plan_.exact = plan_.exact && result.exact;
    for (Found& found : result.best)
      plan_.candidates.push_back({pattern, island_sizes, std::move(found.order), found.cost, result.exact});
  }

  /// The lower envelope of the candidates' times: from the one that is best for nothing at all, on to whichever crosses
  /// it first.
  void find_ranges() {
    const auto& all = plan_.candidates;
    if (all.empty()) return;
    const auto key = [](const Candidate& each) { return std::pair(each.cost.latency_s, each.cost.s_per_byte); };
    size_t at = 0;
    for (size_t i = 1; i < all.size(); ++i)
      if (key(all[i]) < key(all[at])) at = i;
    plan_.ranges.push_back({0, at});
    for (std::optional<SizeRange> next = after(at); next; next = after(at)) {
      plan_.ranges.push_back(*next);
      at = next->candidate;
    }
  }

  std::optional<SizeRange> after(size_t at) const {
    const Cost& now = plan_.candidates[at].cost;
    std::optional<SizeRange> next;
    for (size_t i = 0; i < plan_.candidates.size(); ++i) {
      const Cost& other = plan_.candidates[i].cost;
      if (other.s_per_byte >= now.s_per_byte * kLess) continue;
      const double crossing = (other.latency_s - now.latency_s) / (now.s_per_byte - other.s_per_byte);
      const auto key = std::pair(crossing, other.s_per_byte);
      if (!next || key < std::pair(next->from_bytes, plan_.candidates[next->candidate].cost.s_per_byte))
        next = {crossing, i};
    }
    return next;
  }

  Plan plan_;
};

}  // namespace

const Candidate& Plan::best(double bytes) const {
  const auto next = std::ranges::find_if(ranges, [&](const SizeRange& range) { return range.from_bytes > bytes; });
  return candidates[(next == ranges.begin() ? next : next - 1)->candidate];
}

std::vector<size_t> Plan::by_algorithm(double bytes) const {
  std::map<Algorithm, size_t> fastest;
  const auto seconds = [&](size_t candidate) { return candidates[candidate].cost.seconds(bytes); };
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto [at, is_new] = fastest.emplace(candidates[i].pattern.algorithm, i);
    if (!is_new && seconds(i) < seconds(at->second)) at->second = i;
  }
  std::vector<size_t> sorted;
  for (const auto& [algorithm, candidate] : fastest) sorted.push_back(candidate);
  std::ranges::stable_sort(sorted, [&](size_t a, size_t b) { return seconds(a) < seconds(b); });
  return sorted;
}

Result<Plan> plan_all_reduce(Network network) {
  const size_t n = network.size();
  if (n < 2) return usage_error("an all-reduce needs two devices or more");
  if (n > kMostRanks)
    return usage_error(fmt::format("an all-reduce is planned for up to {} devices, these are {}", kMostRanks, n));
  Plan plan = Planner(std::move(network)).make();
  if (plan.candidates.empty())
    return usage_error(
        "no all-reduce can be planned, as the links of known speed do not join these devices; `remuda bench links` "
        "measures them");
  return plan;
}

std::vector<Round> rounds_of(const Network& network, const Candidate& candidate) {
  const auto& [pattern, sizes, order, cost, exact] = candidate;
  const auto share = [&](size_t chunk) { return static_cast<double>(chunk) / static_cast<double>(pattern.chunks); };
  Rounds divider(network);
  std::vector<Round> rounds;
  for (size_t step = 0; step < pattern.steps.size(); ++step) {
    divider.divide(pattern.steps[step], pattern.chunks, order);
    const size_t first = rounds.size();
    for (const Cost& each : divider.costs()) rounds.push_back({.step = step, .cost = each});
    for (size_t i = 0; i < pattern.steps[step].size(); ++i) {
      const Move& move = pattern.steps[step][i];
      rounds[first + divider.round_of()[i]].transfers.push_back(
          {order[move.from], order[move.to], share(move.begin), share(move.end), move.adds});
    }
  }
  return rounds;
}

std::vector<double> carried(const Network& network, const std::vector<Round>& rounds) {
  std::vector<double> sums(network.channels.size(), 0);
  for (const Round& round : rounds)
    for (const Transfer& transfer : round.transfers)
      for (const size_t channel : network.routes[transfer.from][transfer.to].channels)
        sums[channel] += transfer.end - transfer.begin;
  return sums;
}

Limit limit_of(const Network& network, const std::vector<Round>& rounds, double bytes) {
  std::vector<size_t> routes(network.channels.size(), 0);  // that pass each channel
  for (size_t from = 0; from < network.size(); ++from)
    for (size_t to = 0; to < network.size(); ++to)
      for (const size_t channel : network.routes[from][to].channels) ++routes[channel];
  std::map<std::string, std::pair<double, size_t>> waited;  // by link: how long, and one of its channels
  double latency_s = 0, all_s = 0;
  for (const Round& round : rounds) {
    for (const auto& [name, channel] : waited_for(network, round))
      waited.try_emplace(name, 0, channel).first->second.first += round.cost.s_per_byte * bytes;
    latency_s += round.cost.latency_s;
    all_s += round.cost.seconds(bytes);
  }
  const auto longest = std::ranges::max_element(waited, {}, [&](const auto& entry) {
    const auto& [seconds, channel] = entry.second;
    return std::pair(std::round(seconds / all_s / kSame), routes[channel]);
  });
  return {longest->second.second, longest->second.first / all_s, latency_s / all_s};
}

}  // namespace remuda::route
