// NUMA nodes as the kernel numbers them.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda::probe::pci {

/// From /sys/devices/system/node; none when the kernel shows none.
std::vector<NumaNode> find_numa_nodes(const std::string& sysfs);

}  // namespace remuda::probe::pci
