// What is drained and what is leased, for those who look at the devices.
#pragma once

#include <string>

#include "cli/machine.h"

namespace remuda::cli {

/// A line for each device that is drained in the pool of that machine, "gpu:3 is drained: its fan is broken (root, 2 h
/// ago)", or leased, "gpu:0 is leased to alice (job 12)". Nothing where there is no pool, or where this user cannot
/// read it.
std::string pool_notes(const MachineFlags& machine, const Inventory& inventory);

}  // namespace remuda::cli
