// Every subcommand of `remuda`, in the order of --help.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

/// Declares them all, with the program's own flags and examples.
void add_subcommands(Program& program);

}  // namespace remuda::cli
