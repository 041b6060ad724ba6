// What amdgpu reports about one GPU in the GPU's folder on the PCI bus (Linux kernel, Documentation/gpu/amdgpu).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/device.h"

namespace remuda::probe::amd {

/// Fills the readings from these files; each one without a value names the file that did not give it. The model stays
/// empty where the driver knows no product name.
void read_amdgpu(const std::string& folder, Device& device);

/// "0: 500Mhz\n1: 1700Mhz *" -> 1700: the highest clock of a pp_dpm table.
std::optional<int> highest_clock_mhz(std::string_view table);

/// How the GPU is partitioned: SPX means not at all.
Reading<std::string> read_compute_partition(const std::string& folder);

}  // namespace remuda::probe::amd
