// Rings and trees: what the slowest link of a set of devices allows.
//
// An all-reduce around a ring goes at the speed of the ring's slowest link, one along a tree at that of the tree's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace remuda {

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
/// Exact. For n devices the constructor takes about n^2 2^n / 4 byte operations and 17 2^n bytes: 16 devices 1.2 ms
/// and 1.1 MiB, 8 devices microseconds; after that a subset costs one look-up.
///
/// With path[S][v] = the best bottleneck of a path that begins at the first device of S, visits all of S and ends at v:
///   path[S][v] = max over u in S\v of min(path[S\v][u], speed[u][v])
///   ring[S] = max over v of min(path[S][v], speed[v][first])
/// (Held and Karp 1962 with min and max in place of sum and min), on the ranks of the speeds, which fit a byte.
class RingTable {
 public:
  static constexpr size_t kMaxDevices = 16;
  using Mask = uint32_t;  ///< bit i: device i

  /// At most kMaxDevices. Subsets of more than `largest` devices are left out, and have no ring: of 16 devices, those
  /// of up to 4 take a twentieth of the time.
  explicit RingTable(const Speeds& speeds, size_t largest = kMaxDevices);

  /// GB/s of the best ring. Two devices: their link, both ways. Fewer need no link: infinity. 0: no ring of known
  /// links.
  double gbps(Mask mask) const { return gbps_by_rank_[rings_[mask]]; }
  /// That ring; nothing for fewer than two devices or where there is none.
  std::optional<Ring> ring(Mask mask) const;

 private:
  using Rank = uint8_t;
  using Row = std::array<Rank, kMaxDevices>;

  void rank(const Speeds& speeds);
  Rank path_rank(Mask without, size_t to) const;
  void fill(Mask mask);
  size_t step_back(Mask mask, size_t to, Rank at_least) const;

  std::vector<double> gbps_by_rank_;           ///< ascending; 0 is no link, the last is infinity
  std::array<Row, kMaxDevices> link_ranks_{};  ///< as Speeds
  std::vector<Row> paths_;                     ///< by mask and end
  std::vector<Rank> rings_;                    ///< by mask
};

/// The tree that joins all devices and whose slowest link is fastest. Nothing for fewer than two devices or where known
/// links do not join them all. Any number of devices, n^2 steps (Prim).
std::optional<Bottleneck> best_tree(const Speeds& speeds);

}  // namespace remuda
