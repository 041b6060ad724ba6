// `remuda bench`: measures this machine.
#pragma once

#include "cli/command.h"

namespace remuda {

void add_bench(Program& program);

}  // namespace remuda
