// Merging: what several probes found becomes one inventory. Pure.
#pragma once

#include <vector>

#include "device/inventory.h"
#include "probe/probe.h"

namespace remuda::probe {

/// Devices with the same PCI address are one device: for each reading, the first finding that has a value wins, and
/// later ones fill what is missing; the same for links of a pair and network cards. Then GPUs come first in the order
/// of their PCI addresses (one without follows the one it was found after), partitions after them, CPUs last; each gets
/// its index and its final id (UUID, else PCI address, else label), and links and parents are updated.
Inventory merge(std::vector<Finding> findings);

}  // namespace remuda::probe
