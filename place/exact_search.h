// ExactSearch: the best sets among at most 16 devices, found by trying every set. Internal to place.
#pragma once

#include <array>
#include <vector>

#include "place/remainder.h"
#include "place/score.h"
#include "topology/bottleneck.h"

namespace remuda::place {

/// Immutable: made once for a request, and used for different numbers of devices and different subsets.
class ExactSearch {
 public:
  using Mask = topology::RingTable::Mask;  ///< bit i: device i

  /// The traits of a device that are compared. Devices with the same number are alike, or near each other; the numbers
  /// are below 16.
  struct Traits {
    size_t model = 0, speed_class = 0, numa_node = 0, pcie_root = 0;
    bool is_cpu = false;
    bool is_whole = false;  ///< no part of it is held
    double room = 1;        ///< the part of it that is not held
  };

  /// `free_speeds`: of the links that count among devices that stay free.
  ExactSearch(const std::vector<Traits>& devices, const topology::Speeds& free_speeds);

  struct Wanted {
    Mask among = 0;
    int count = 1;
    double share = 1;             ///< of each device
    bool must_be_linked = false;  ///< a set without a ring does not count
  };
  /// Adds the best sets of `wanted.count` devices, and how many there are, to `found`. No set is better than the best
  /// of them. `rings` is over the same devices; null only where one device is wanted.
  void add_best(const Wanted& wanted, const topology::RingTable* rings, BestSets& found) const;

  size_t size() const { return room_.size(); }
  Mask whole() const { return whole_; }
  const Remainder& remainder() const { return remainder_; }

 private:
  friend class Enumeration;

  /// Sixteen bits each for the models, speed classes, NUMA nodes and PCIe roots of a set.
  using Groups = uint64_t;
  Groups groups(Mask set) const { return groups_[0][set & 0xFF] | groups_[1][set >> 8]; }

  Mask cpus_ = 0, whole_ = 0;
  std::array<std::array<Groups, 256>, 2> groups_{};  ///< by the lower and the upper eight devices
  std::vector<double> room_;
  Remainder remainder_;
};

}  // namespace remuda::place
