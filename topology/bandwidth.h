// How fast a pair of devices can exchange data: measured where `remuda bench links` ran, assumed otherwise.
#pragma once

#include <optional>
#include <string>

#include "device/inventory.h"

namespace remuda::topology {

struct PairSpeed {
  double gbps = 0;  ///< from one to the other, one direction, 10^9 bytes/s
  bool measured = false;
  std::string reason;  ///< one sentence: "12 NVLink links of generation 3, 25 GB/s each (assumed)"

  bool operator==(const PairSpeed&) const = default;
};

/// Both ends print the same CPUs, or belong to the same NUMA node. False when that is not known.
bool are_near(const Device& a, const Device& b);

/// The speed of two different devices, given what is recorded of the pair (null: nothing); nothing when it is not
/// known. A measurement wins. Else, by link_speeds.json:
///   links beside PCIe   number of links x speed of one; without a number the driver's own figure, else one link
///   PCIe                the class's figure for generation 4 x16, scaled to the slower end's lanes (highest generation,
///                       current width: idle devices lower their generation); from PHB outwards never above the figure,
///                       as the host is what limits there; never above the driver's own figure
///   no peer access      half of the PCIe speed, and of PHB's at most: every byte crosses host memory
///   two CPU devices     shared memory
/// A GPU that is cut into partitions has no links.
std::optional<PairSpeed> pair_speed(const Device& a, const Device& b, const Link* link, const MeasuredLink* measured);
/// The same; looks up what is recorded of the pair.
std::optional<PairSpeed> pair_speed(const Inventory& inventory, const Device& a, const Device& b);

}  // namespace remuda::topology
