// remuda bind: under mpirun or srun within a lease, gives each process of this machine a device of its own.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

void add_bind(Program& program);

}  // namespace remuda::cli
