// `remuda list`: the devices of a machine, who uses them, and why a reading is missing.
#pragma once

#include <string>

#include "base/table.h"
#include "cli/jobs/pool_notes.h"
#include "device/inventory.h"

namespace remuda::cli {

/// A line per device, with who computes on it or, where nobody does, has leased it; below it, each once, the sentences
/// that say why readings are missing, why there is no GPU, and further notes. See Table::text() for `width`.
std::string inventory_text(const Inventory& inventory, size_t width = Table::kAnyWidth, const Leases& leases = {});

/// Everything known of one device, a reading per line.
std::string device_text(const Device& device);

}  // namespace remuda::cli
