// `remuda list`: the devices of this machine.
#pragma once

#include <string>

#include "cli/command.h"
#include "device/inventory.h"

namespace remuda {

void add_list(Program& program);

/// A line per device; a reading that is missing shows why.
std::string inventory_table(const Inventory& inventory);

}  // namespace remuda
