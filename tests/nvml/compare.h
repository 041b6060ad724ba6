// Tests only: a recorded machine against what a probe saw of it.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda::tests::nvml {

/// The GPUs, then the partitions, in the order of the inventory.
std::vector<Device> gpus_of(const Inventory& machine);

/// One line for each thing that is recorded and that NVML can tell, and that `shown` tells otherwise or not at all. A
/// recorded GPU without a UUID is taken to be the shown one of the same index. A reading that is missing must be
/// missing for the same reason, in whatever words.
std::vector<std::string> disagreements(const Inventory& recorded, const Inventory& shown);

}  // namespace remuda::tests::nvml
