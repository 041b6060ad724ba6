// `remuda import`: what other programs printed of a machine, as an inventory.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

void add_import(Program& program);

}  // namespace remuda::cli
