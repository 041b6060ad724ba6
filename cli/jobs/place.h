// `remuda place`: which devices a job would get, without taking them.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

void add_place(Program& program);

}  // namespace remuda::cli
