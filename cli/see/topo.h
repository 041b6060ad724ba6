// `remuda topo`: how the devices of a machine are joined.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"

namespace remuda::cli {

/// The answer to --set: ring and tree bottleneck of the named devices. A usage error for a name that is no device, or
/// one that is named twice.
Result<std::string> set_text(const Inventory& inventory, const std::vector<std::string>& names);

}  // namespace remuda::cli
