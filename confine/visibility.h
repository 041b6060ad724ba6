// Visibility: the environment that makes a job see the devices it was granted, and no others.
//
// Each maker's runtime has a variable of its own that names the devices a process sees, in the order in which it
// numbers them. Devices are named by UUID, as numbers change with the order a runtime likes. These variables are a
// courtesy between well-behaved programs, not a wall: a job that sets them anew sees what it wants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "process/spawn.h"

namespace remuda::confine {

struct Visibility {
  process::Environment set;
  std::vector<std::string> unset;  ///< would filter a second time, by number, what was filtered by UUID
};

/// Pure. For `granted`: ids of devices of the inventory; others are passed over. A maker of whom nothing was granted
/// gets an empty variable, so that its runtime finds nothing. Devices without a UUID (old recordings) go by their
/// index.
Visibility visibility(const Inventory& inventory, const std::vector<std::string>& granted);

/// The variable, as NAME=VALUE, and the value, by which the caller of remuda asks for certain devices; nothing where
/// none is set. A job is not given what such a variable names.
struct VisibleToCaller {
  std::string entry, devices;
};
std::optional<VisibleToCaller> visible_to_caller();

}  // namespace remuda::confine
