// `remuda bench`: measures this machine.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

void add_bench(Program& program);

}  // namespace remuda::cli
