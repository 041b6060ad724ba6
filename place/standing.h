// Standing: what one set of devices is worth beside another. Internal to place.
#pragma once

#include <cstdint>
#include <string>

namespace remuda::place {

/// The criteria, the first that differs decides. Ties go to the set whose devices come first in the inventory.
struct Standing {
  int cpus = 0;          ///< CPU devices in it: fewer is better
  double ring_gbps = 0;  ///< slowest link of its best ring: more; 0: not known, infinite: one device needs no link
  int models = 1;        ///< kinds of device in it: fewer
  int speeds = 1;        ///< classes of computing speed in it: fewer
  int numa_nodes = 1;    ///< fewer
  int pcie_roots = 1;    ///< fewer
  int opened = 0;        ///< devices of which nobody held a part before: fewer
  int64_t spare = 0;     ///< room on its devices beyond what is asked, millionths of a device: less
  int64_t left = 0;      ///< what stays free is worth (place/left.h), millionths: more

  bool operator==(const Standing&) const = default;
};

bool is_better(const Standing& a, const Standing& b);
/// The same, whatever `left` is.
bool is_better_but_for_left(const Standing& a, const Standing& b);

}  // namespace remuda::place
