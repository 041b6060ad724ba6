// remuda logs: what a job wrote, or writes.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

void add_logs(Program& program);

}  // namespace remuda::cli
