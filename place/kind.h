// Kind: what makes devices alike, or near each other. Internal to place.
#pragma once

#include <cstddef>
#include <vector>

#include "device/inventory.h"

namespace remuda::place {

/// Numbers from 0 on, equal for devices of one model, on one NUMA node, on one PCIe root. All devices for which that is
/// not known share one number.
struct Kind {
  size_t model = 0;  ///< without --any-model, a set has devices of one model
  size_t numa_node = 0, pcie_root = 0;
};

/// One for each device.
std::vector<Kind> kinds_of(const std::vector<const Device*>& devices);

/// The class of computing speed of each device, from 0 on. A class begins at the slowest device that is 5 % faster than
/// the first one of the class before.
std::vector<size_t> speed_classes_of(const Inventory& inventory, const std::vector<const Device*>& devices);

}  // namespace remuda::place
