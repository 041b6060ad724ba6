// Tests only: compares a recorded machine with the inventory of a probe.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda::tests::nvml {

/// The GPUs, then the partitions, in the order of the inventory.
std::vector<Device> gpus_of(const Inventory& machine);

/// One line for each recorded value that NVML can report, and that is different or missing in `shown`. A recorded GPU
/// without a UUID is matched with the shown one of the same index. A missing reading must be missing with the same
/// MissingReason; its text may differ.
std::vector<std::string> disagreements(const Inventory& recorded, const Inventory& shown);

}  // namespace remuda::tests::nvml
