// Score: compares one set of devices with another for the same request. Internal to place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace remuda::place {

/// The criteria of place.h: the first that differs decides. Of equal sets, the first in the inventory's order wins.
struct Score {
  int cpus = 0;           ///< CPU devices in it: fewer is better
  double ring_gbps = 0;   ///< slowest link of its best ring: more; 0: not known, infinite: one device needs no link
  int models = 1;         ///< kinds of device in it: fewer
  int speed_classes = 1;  ///< classes of computing speed in it: fewer
  int numa_nodes = 1;     ///< fewer
  int pcie_roots = 1;     ///< fewer
  int opened = 0;         ///< devices of which no part was held before: fewer
  int64_t spare = 0;      ///< room on its devices beyond what is asked, millionths of a device: less
  int64_t remainder = 0;  ///< worth of the devices that stay free (place/remainder.h), millionths: more

  bool operator==(const Score&) const = default;
};

/// Below 0: `a` is better; above: `b` is; 0: no criterion before the remainder differs.
inline int compare_without_remainder(const Score& a, const Score& b) {
  const auto costs = [](const Score& s) {
    return std::make_tuple(s.cpus, -s.ring_gbps, s.models, s.speed_classes, s.numa_nodes, s.pcie_roots, s.opened,
                           s.spare);
  };
  const auto order = costs(a) <=> costs(b);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

inline bool is_better(const Score& a, const Score& b) {
  const int order = compare_without_remainder(a, b);
  return order < 0 || (order == 0 && a.remainder > b.remainder);
}

/// Devices, as ascending positions in a list of them, and their score as a set.
struct ScoredSet {
  std::vector<size_t> members;
  Score score;
};

inline constexpr size_t kKeptSets = 4;  ///< the best one, and the runners-up that an explanation names

struct BestSets {
  std::vector<ScoredSet> sets;  ///< the best first
  int64_t considered = 0;       ///< sets that satisfy the request and were compared
  bool exhaustive = true;       ///< those are all such sets
};

}  // namespace remuda::place
