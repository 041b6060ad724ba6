// remuda hold, release: devices for a person at a terminal.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

void add_hold(Program& program);
void add_release(Program& program);

}  // namespace remuda::cli
