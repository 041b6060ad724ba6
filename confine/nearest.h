// The CPUs and the memory nearest to a job's devices. Pure.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"
#include "process/affinity.h"

namespace remuda::confine {

/// Of the granted devices: the CPUs and NUMA nodes next to any of them, as far as this process may use those CPUs
/// (`allowed`). A device that does not tell its CPUs leaves the job all of them.
process::Affinity nearest_cores(const Inventory& inventory, const std::vector<std::string>& granted,
                                const std::vector<int>& allowed);

}  // namespace remuda::confine
