// `remuda place`: which devices a job would get, without taking them.
#pragma once

#include "cli/command.h"

namespace remuda {

void add_place(Program& program);

}  // namespace remuda
