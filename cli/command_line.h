// The `remuda` program: parses the command line and runs the chosen subcommand. main.cc calls it and nothing else, so
// that the command line's heavy headers are read for one file less.
#pragma once

namespace remuda::cli {

/// The program's exit status: 0 done, 1 failed, 2 wrong input, and what the subcommand's own help says.
int run_command_line(int argc, char** argv);

}  // namespace remuda::cli
