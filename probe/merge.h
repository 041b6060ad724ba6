// Merging: what several probes found becomes one inventory. Pure.
#pragma once

#include <vector>

#include "device/inventory.h"
#include "probe/probe.h"

namespace remuda::probe {

/// Devices with the same PCI address are one device: of each reading the first finding that took it wins, later ones
/// fill what it lacks; links of a pair and network cards likewise. Then GPUs come first in the order of their PCI
/// addresses (one without follows the one it was found after), partitions after them, CPUs last; each gets its index
/// and its final id (UUID, else PCI address, else label), and links and parents follow.
Inventory merge(std::vector<Finding> findings);

}  // namespace remuda::probe
