// Health: the faults that exclude a device from placement.
#pragma once

#include <optional>
#include <string>

#include "device/inventory.h"

namespace remuda::place {

/// Why nothing may be placed on `device` until it is repaired, as half a sentence ("is lost: ..."); nothing when it has
/// no fault. A partition has the faults of its GPU.
std::optional<std::string> ailment(const Inventory& inventory, const Device& device);

/// Whether it is lost, and not even its model is known: once it is back it may be any device.
bool is_unknown(const Device& device);

/// Whether a driver's fatal error code is caused by a program and leaves the device usable.
bool is_harmless_error(int code);

}  // namespace remuda::place
