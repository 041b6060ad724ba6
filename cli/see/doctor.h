// `remuda doctor`: what is wrong with this machine, and what mends it.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

void add_doctor(Program& program);

}  // namespace remuda::cli
