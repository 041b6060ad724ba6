#include "topology/bottleneck.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace remuda::topology {
namespace {

constexpr RingTable::Mask bit(size_t device) { return RingTable::Mask{1} << device; }

size_t first_of(RingTable::Mask mask) { return static_cast<size_t>(std::countr_zero(mask)); }

/// The best of paths to each end, continued by its link.
template <size_t Rows>
ByteLanes reach(const ByteLanes* paths, const ByteLanes* links) {
  ByteLanes best{};
#pragma GCC unroll 16
  for (size_t end = 0; end < Rows; ++end) best = max(best, min(paths[end], links[end]));
  return best;
}

/// All ones in the lanes whose set, and so many devices more, are at most `largest`.
ByteLanes lanes_up_to(size_t largest, size_t more) {
  ByteLanes lanes{};
  for (size_t lane = 0; lane < ByteLanes::kCount; ++lane)
    if (more + static_cast<size_t>(std::popcount(lane)) <= largest) lanes.set(lane, 0xFF);
  return lanes;
}

}  // namespace

RingTable::RingTable(const Speeds& speeds, size_t largest) : in_block_(std::max(speeds.size(), kInLane) - kInLane) {
  REMUDA_CHECK(speeds.size() <= kMaxDevices, "best rings are found for a bounded number of devices");
  rank(speeds);
  paths_ = std::make_unique_for_overwrite<Rows[]>(bit(in_block_));
  rings_ = std::make_unique_for_overwrite<ByteLanes[]>(bit(in_block_));
  std::array<ByteLanes, kMaxDevices + 1> wanted;
  for (size_t more = 0; more < wanted.size(); ++more) wanted[more] = lanes_up_to(largest, more);
  fill_first();
  for (Mask block = 0; block < bit(in_block_); ++block) {
    const auto count = static_cast<size_t>(std::popcount(block));
    if (block != 0 && count <= largest) fill(block);
    rings_[block] = count <= largest ? rings_[block] & wanted[count] : ByteLanes{};
  }
}

void RingTable::rank(const Speeds& speeds) {
  std::vector<double>& known = gbps_by_rank_;
  known = {0, std::numeric_limits<double>::infinity()};
  for (size_t i = 0; i < speeds.size(); ++i) known.insert(known.end(), speeds[i].begin(), speeds[i].begin() + i);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (size_t i = 0; i < speeds.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      links_[row_of(i)][row_of(j)] = links_[row_of(j)][row_of(i)] =
          ByteLanes::all(static_cast<Rank>(std::lower_bound(known.begin(), known.end(), speeds[i][j]) - known.begin()));
}

RingTable::Rank RingTable::first_path(size_t lane, size_t to) const {
  Rank best = 0;
  for (size_t end = kInBlock; end < kMaxDevices; ++end)
    best = std::max(best, std::min(paths_[0][end][lane], links_[to][end][0]));
  return best;
}

/// The block of sets without a device before the last four. A path begins at another device in each lane, so one after
/// another.
void RingTable::fill_first() {
  const auto free = static_cast<Rank>(gbps_by_rank_.size() - 1);
  paths_[0] = Rows{};
  rings_[0] = ByteLanes::all(free);
  for (Mask lane = 1; lane < ByteLanes::kCount; ++lane) {
    const size_t first = first_of(lane);
    const Mask others = lane & (lane - 1);
    if (others == 0) {
      paths_[0][kInBlock + first].set(lane, free);
      continue;
    }
    for (Mask rest = others; rest != 0; rest &= rest - 1) {
      const size_t end = kInBlock + first_of(rest);
      paths_[0][end].set(lane, first_path(lane ^ bit(first_of(rest)), end));
    }
    rings_[0].set(lane, first_path(lane, kInBlock + first));
  }
}

/// Completes one block. Its paths that end at a device of the block are there already, as each block writes the paths
/// that go one device further into the larger block; so does this one.
void RingTable::fill(Mask block) {
  const auto free = static_cast<Rank>(gbps_by_rank_.size() - 1);
  const size_t first = first_of(block);
  const bool is_alone = (block & (block - 1)) == 0;
  Rows& paths = paths_[block];
  for (Mask absent = (bit(kInBlock) - 1) & ~block; absent != 0; absent &= absent - 1)
    paths[first_of(absent)] = ByteLanes{};
  paths[first] = ByteLanes{};
  if (is_alone) paths[first].set(0, free);
  fill_lane_ends(paths);
  rings_[block] = reach<kMaxDevices>(paths.data(), links_[first].data());
  if (is_alone) rings_[block].set(0, free);
  const Mask behind_first = (bit(in_block_) - 1) & ~(bit(first + 1) - 1);
  for (Mask absent = behind_first & ~block; absent != 0; absent &= absent - 1) {
    const size_t end = first_of(absent);
    paths_[block | bit(end)][end] = reach<kMaxDevices>(paths.data(), links_[end].data());
  }
}

/// After round n, the paths are right whose last devices, n at most, are the lane's.
void RingTable::fill_lane_ends(Rows& paths) const {
  ByteLanes* ends = paths.data() + kInBlock;
  const auto from_block = [&](size_t end) { return reach<kInBlock>(paths.data(), links_[kInBlock + end].data()); };
  const std::array<ByteLanes, kInLane> direct{from_block(0), from_block(1), from_block(2), from_block(3)};
  std::fill_n(ends, kInLane, ByteLanes{});
#pragma GCC unroll 4
  for (size_t round = 0; round < kInLane; ++round) {
    const auto through = [&](size_t end) {
      return max(direct[end], reach<kInLane>(ends, links_[kInBlock + end].data() + kInBlock));
    };
    const std::array<ByteLanes, kInLane> next{moved_to_sets_with<0>(through(0)), moved_to_sets_with<1>(through(1)),
                                              moved_to_sets_with<2>(through(2)), moved_to_sets_with<3>(through(3))};
    std::copy(next.begin(), next.end(), ends);
  }
}

size_t RingTable::step_back(Mask mask, size_t to, Rank at_least) const {
  size_t from = 0;
  while (std::min(path(mask, from), link(to, from)) < at_least) ++from;
  return from;
}

std::optional<Ring> RingTable::ring(Mask mask) const {
  const Rank rank = rings_[block_of(mask)][lane_of(mask)];
  if (std::popcount(mask) < 2 || rank == 0) return std::nullopt;
  Ring ring;
  const size_t first = first_of(mask);
  Rank slowest = std::numeric_limits<Rank>::max();
  Mask left = mask;
  for (size_t to = first; left != 0;) {
    const size_t from = step_back(left, to, rank);
    if (const Rank speed = link(from, to); speed < slowest) {
      slowest = speed;
      ring.bottleneck = {gbps_by_rank_[speed], std::min(from, to), std::max(from, to)};
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

}  // namespace remuda::topology
