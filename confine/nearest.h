// The CPUs and the memory nearest to a job's devices. Pure.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"
#include "process/affinity.h"

namespace remuda::confine {

/// Of the granted devices: the CPUs and NUMA nodes next to any of them, as far as this process may use those CPUs
/// (`allowed`). With a device that does not report its CPUs, the job gets all of them.
process::Affinity nearest_cores(const Inventory& inventory, const std::vector<std::string>& granted,
                                const std::vector<int>& allowed);

}  // namespace remuda::confine
