// Remainder: the value for later jobs of the devices that stay free. Internal to place.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "topology/bottleneck.h"

namespace remuda::place {

/// Over at most RingTable::kMaxDevices devices.
///
///   worth(F) = pair(F) / pair(all) + four(F) / four(all) + 1/2 sum over i in F of link(i, F) / pair(all)
///
/// with pair and four the slowest link of the best ring of two and of four of F, and link(i, F) the fastest from i to
/// another device of F. The sum keeps linked pairs whole: a device without a linked partner adds little, so jobs for
/// one device take those. A term whose divisor is 0 is left out.
class Remainder {
 public:
  using Mask = topology::RingTable::Mask;

  explicit Remainder(const topology::Speeds& speeds);

  double worth(Mask free) const { return worth_above(-1, free); }
  /// The same, or some value not above `enough` as soon as it is certain not to exceed `enough`.
  double worth_above(double enough, Mask free) const;

  /// Devices and the slowest link of their best ring.
  struct Group {
    Mask devices = 0;
    double gbps = 0;
  };
  /// Of several that are equal, the first in the order of devices. Nothing where links are not known or there are too
  /// few devices.
  std::optional<Group> best_pair(Mask free) const { return first_within(free, pairs_); }
  std::optional<Group> best_four(Mask free) const { return first_within(free, fours_); }

 private:
  /// Tables have a value for each half of a mask, so that they stay small.
  static constexpr size_t kHalfBits = 8;
  template <typename T>
  using ByHalf = std::array<std::array<T, size_t{1} << kHalfBits>, topology::RingTable::kMaxDevices / kHalfBits>;

  static std::optional<Group> first_within(Mask free, const std::vector<Group>& groups);
  void rank_links(const topology::Speeds& speeds);
  void list_pairs(size_t count);
  void list_fours(size_t count);
  void fill_tables(size_t count);
  /// Each device's lane has the rank of its fastest link to another one of `devices`.
  topology::ByteLanes fastest_to(Mask devices) const {
    return max(fastest_[0][devices & ((Mask{1} << kHalfBits) - 1)], fastest_[1][devices >> kHalfBits]);
  }

  std::vector<double> gbps_by_rank_;                                           ///< ascending; the first is 0, no link
  std::array<topology::ByteLanes, topology::RingTable::kMaxDevices> ranks_{};  ///< of the link of each two devices
  ByHalf<topology::ByteLanes> fastest_{};                                      ///< as fastest_to()
  ByHalf<double> most_gbps_{};            ///< the sum of the fastest link that each of these has to any device
  std::vector<Group> pairs_, fours_;      ///< those with a ring, the fastest first
  double pair_gbps_ = 0, four_gbps_ = 0;  ///< of the best
};

}  // namespace remuda::place
