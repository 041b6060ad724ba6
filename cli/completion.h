// `remuda completion`: what lets a shell complete remuda's subcommands and flags. Generated from the same declarations
// that parse the command line.
#pragma once

#include "cli/command.h"

namespace remuda::cli {

/// The script is made when it is asked for, so this may be added before other subcommands.
void add_completion(Program& program);

}  // namespace remuda::cli
