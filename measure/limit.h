// Limit: what a bus can carry at best, to compare a measured figure with. Pure.
#pragma once

#include <optional>
#include <string>

#include "device/inventory.h"

namespace remuda::measure {

struct Limit {
  double gbps = 0;   ///< 10^9 bytes/s in each direction
  std::string what;  ///< "PCIe 4 x16"
};

/// Payload of a PCIe link in each direction: transfers per second x lanes x line code (8b/10b for generations 1 and 2,
/// 128b/130b for 3 to 5, 242 bytes of a flit of 256 for 6), before packet headers. Nothing for other generations.
std::optional<double> pcie_gbps(int generation, int width);

/// Of a GPU: its PCIe link, at the highest generation (idle GPUs lower it) and the width it has now, or could have
/// where that is not known. Nothing when neither is known, and for CPUs.
std::optional<Limit> bus_limit(const Device& device);

/// Of two GPUs: what the driver says of their link; for those with nothing but PCIe between them, the slower bus.
std::optional<Limit> pair_limit(const Inventory& inventory, const Device& a, const Device& b);

}  // namespace remuda::measure
