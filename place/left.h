// What devices that stay free are still good for. Internal to place.
#pragma once

#include <optional>
#include <vector>

#include "topology/bottleneck.h"

namespace remuda::place {

/// Over at most RingTable::kMaxDevices devices.
///
///   worth(F) = pair(F) / pair(all) + four(F) / four(all) + 1/2 sum over i in F of link(i, F) / pair(all)
///
/// with pair and four the slowest link of the best ring of two and of four of them, and link(i, F) the fastest from i
/// to another of F. The sum keeps linked pairs whole: a device without a linked partner adds little, so jobs for one
/// device take those. A term whose divisor is 0 is left out.
class Left {
 public:
  using Mask = topology::RingTable::Mask;

  explicit Left(const topology::Speeds& speeds);

  double worth(Mask free) const;
  /// The same, or some value not above `enough` as soon as it is certain not to exceed `enough`.
  double worth_above(double enough, Mask free) const;

  struct Best {
    Mask devices = 0;
    double gbps = 0;
  };
  /// Nothing where links are not known or the devices are too few.
  std::optional<Best> pair(Mask free) const;
  std::optional<Best> four(Mask free) const;

 private:
  struct Reach {
    double gbps;
    Mask peers;
  };

  /// The fastest two links of a device to others of `free`; 0 where it has none.
  struct Links {
    double first = 0, second = 0;
  };

  Links links(size_t device, Mask free) const;
  std::optional<Best> four(Mask free, double most) const;  ///< none is above `most`
  /// No worth of them is above; cheap.
  double most_worth(Mask free) const;
  double ring_of_four(size_t a, size_t b, size_t c, size_t d) const;

  const topology::Speeds speeds_;
  std::vector<std::vector<Reach>> reaches_;  ///< of each device: its peers by speed, fastest first
  std::vector<double> fastest_;              ///< of each device: its fastest link
  double pair_ = 0, four_ = 0;
};

}  // namespace remuda::place
