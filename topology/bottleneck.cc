#include "topology/bottleneck.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace remuda {
namespace {

constexpr RingTable::Mask bit(size_t device) { return RingTable::Mask{1} << device; }

size_t first_of(RingTable::Mask mask) { return static_cast<size_t>(std::countr_zero(mask)); }

}  // namespace

RingTable::RingTable(const Speeds& speeds, size_t largest) : paths_(bit(speeds.size())), rings_(bit(speeds.size())) {
  REMUDA_CHECK(speeds.size() <= kMaxDevices, "best rings are found for a bounded number of devices");
  rank(speeds);
  for (Mask mask = 0; mask < rings_.size(); ++mask)
    if (static_cast<size_t>(std::popcount(mask)) <= largest) fill(mask);
}

void RingTable::rank(const Speeds& speeds) {
  std::vector<double>& known = gbps_by_rank_;
  known = {0, std::numeric_limits<double>::infinity()};
  for (size_t i = 0; i < speeds.size(); ++i) known.insert(known.end(), speeds[i].begin(), speeds[i].begin() + i);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (size_t i = 0; i < speeds.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      link_ranks_[i][j] = link_ranks_[j][i] =
          static_cast<Rank>(std::lower_bound(known.begin(), known.end(), speeds[i][j]) - known.begin());
}

RingTable::Rank RingTable::path_rank(Mask without, size_t to) const {
  const Row &path = paths_[without], &link = link_ranks_[to];
  Rank best = 0;
  for (size_t u = 0; u < kMaxDevices;
       ++u) {  // values, not std::min's references: so the compiler makes it 8 instructions
    const Rank through = path[u] < link[u] ? path[u] : link[u];
    best = best > through ? best : through;
  }
  return best;
}

void RingTable::fill(Mask mask) {
  const Rank free = static_cast<Rank>(gbps_by_rank_.size() - 1);
  if (std::popcount(mask) < 2) {
    rings_[mask] = free;
    if (mask != 0) paths_[mask][first_of(mask)] = free;
    return;
  }
  const size_t first = first_of(mask);
  for (Mask rest = mask & (mask - 1); rest != 0; rest &= rest - 1) {
    const size_t end = first_of(rest);
    paths_[mask][end] = path_rank(mask ^ bit(end), end);
  }
  rings_[mask] = path_rank(mask, first);
}

size_t RingTable::step_back(Mask mask, size_t to, Rank at_least) const {
  size_t from = 0;
  while (std::min(paths_[mask][from], link_ranks_[to][from]) < at_least) ++from;
  return from;
}

std::optional<Ring> RingTable::ring(Mask mask) const {
  const Rank rank = rings_[mask];
  if (std::popcount(mask) < 2 || rank == 0) return std::nullopt;
  Ring ring;
  const size_t first = first_of(mask);
  Rank slowest = std::numeric_limits<Rank>::max();
  Mask left = mask;
  for (size_t to = first; left != 0;) {
    const size_t from = step_back(left, to, rank);
    if (const Rank link = link_ranks_[from][to]; link < slowest) {
      slowest = link;
      ring.bottleneck = {gbps_by_rank_[link], std::min(from, to), std::max(from, to)};
    }
    ring.order.push_back(from);
    left ^= bit(from);
    to = from;
  }
  std::rotate(ring.order.begin(), ring.order.end() - 1, ring.order.end());
  return ring;
}

std::optional<Bottleneck> best_tree(const Speeds& speeds) {
  const size_t n = speeds.size();
  if (n < 2) return std::nullopt;
  Bottleneck slowest{std::numeric_limits<double>::infinity(), 0, 0};
  std::vector<Bottleneck> reach(n);  // the fastest link from the tree to each device
  std::vector<bool> joined(n, false);
  size_t latest = 0;
  for (size_t step = 1; step < n; ++step) {
    joined[latest] = true;
    size_t next = n;
    for (size_t i = 0; i < n; ++i) {
      if (joined[i]) continue;
      if (speeds[latest][i] > reach[i].gbps) reach[i] = {speeds[latest][i], std::min(latest, i), std::max(latest, i)};
      if (next == n || reach[i].gbps > reach[next].gbps) next = i;
    }
    if (reach[next].gbps <= 0) return std::nullopt;
    if (reach[next].gbps < slowest.gbps) slowest = reach[next];
    latest = next;
  }
  return slowest;
}

}  // namespace remuda
