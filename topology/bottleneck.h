// Rings and trees: what the slowest link of a set of devices allows.
//
// An all-reduce around a ring goes at the speed of the ring's slowest link, one along a tree at that of the tree's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "topology/byte_lanes.h"

namespace remuda::topology {

/// GB/s of each pair, symmetric, at least 0; 0: nothing is known, and no ring or tree goes there. The diagonal is not
/// read.
using Speeds = std::vector<std::vector<double>>;

/// The slowest link of the best ring or tree, and which one it is: a < b, positions in Speeds.
struct Bottleneck {
  double gbps = 0;
  size_t a = 0, b = 0;
};

struct Ring {
  Bottleneck bottleneck;
  std::vector<size_t> order;  ///< around the ring, from the set's first device; 0 1 2 .. where all links are alike
};

/// The best rings of all subsets of a machine's devices: over all cyclic orders, the one whose slowest link is fastest.
/// Exact. For n devices the constructor takes about n^2 2^n / 4 byte operations, sixteen at once, and 17 2^n bytes: 16
/// devices 0.3 ms and 1.1 MiB, 8 devices microseconds; after that a subset costs one look-up.
///
/// Example:
///   const RingTable rings({{0, 50, 10}, {50, 0, 10}, {10, 10, 0}});
///   const double of_first_two = rings.gbps(0b011);
///   const double of_all = rings.gbps(0b111);
///
/// With path[S][v] = the best bottleneck of a path that begins at the first device of S, visits all of S and ends at v:
///   path[S][v] = max over u in S\v of min(path[S\v][u], speed[u][v])
///   ring[S] = max over v of min(path[S][v], speed[v][first])
/// (Held and Karp 1962 with min and max in place of sum and min), on the ranks of the speeds, which fit a byte. Sixteen
/// sets are worked on together: those that differ in the last four devices only. Their common part, the devices before,
/// is a block, and what is in each of the sixteen is a lane.
class RingTable {
 public:
  static constexpr size_t kMaxDevices = 16;
  using Mask = uint32_t;  ///< bit i: device i

  /// At most kMaxDevices. Subsets of more than `largest` devices are left out, and have no ring: of 16 devices, those
  /// of up to 4 take a twentieth of the time.
  explicit RingTable(const Speeds& speeds, size_t largest = kMaxDevices);

  /// GB/s of the best ring. Two devices: their link, both ways. Fewer need no link: infinity. 0: no ring of known
  /// links.
  double gbps(Mask mask) const { return gbps_by_rank_[rings_[block_of(mask)][lane_of(mask)]]; }
  /// That ring; nothing for fewer than two devices or where there is none.
  std::optional<Ring> ring(Mask mask) const;

 private:
  using Rank = uint8_t;
  static constexpr size_t kInLane = 4, kInBlock = kMaxDevices - kInLane;
  /// A value of each of a block's sixteen sets, for each device: the first kInBlock rows are those of the devices of
  /// blocks, the others those of the lanes.
  using Rows = std::array<ByteLanes, kMaxDevices>;

  Mask block_of(Mask mask) const { return mask & ((Mask{1} << in_block_) - 1); }
  size_t lane_of(Mask mask) const { return mask >> in_block_; }
  size_t row_of(size_t device) const { return device < in_block_ ? device : kInBlock + device - in_block_; }
  Rank link(size_t a, size_t b) const { return links_[row_of(a)][row_of(b)][0]; }
  Rank path(Mask mask, size_t end) const { return paths_[block_of(mask)][row_of(end)][lane_of(mask)]; }

  void rank(const Speeds& speeds);
  void fill_first();
  Rank first_path(size_t lane, size_t to) const;
  void fill(Mask block);
  void fill_lane_ends(Rows& paths) const;
  size_t step_back(Mask mask, size_t to, Rank at_least) const;

  size_t in_block_;                        ///< devices before the last four
  std::vector<double> gbps_by_rank_;       ///< ascending; 0 is no link, the last is infinity
  std::array<Rows, kMaxDevices> links_{};  ///< by row, as Speeds, each the same in all lanes
  std::unique_ptr<Rows[]> paths_;          ///< by block and end; 0 where the end is not in the set
  std::unique_ptr<ByteLanes[]> rings_;     ///< by block
};

/// The tree that joins all devices and whose slowest link is fastest. Nothing for fewer than two devices or where known
/// links do not join them all. Any number of devices, n^2 steps (Prim).
std::optional<Bottleneck> best_tree(const Speeds& speeds);

}  // namespace remuda::topology
