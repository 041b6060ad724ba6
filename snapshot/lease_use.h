// LeaseUse: what a lease was used for, as far as samples of the device show it. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "device/inventory.h"

namespace remuda::snapshot {

/// Of the device with that id, from one time to another: {"busy_s", "busy_known_s", "effective_s",
/// "effective_known_s"}, as the live machine counts it (monitor/use.h). A sample holds until the next one.
Json use_between(const Inventory& inventory, const std::string& device, double from_s, double to_s);

}  // namespace remuda::snapshot
