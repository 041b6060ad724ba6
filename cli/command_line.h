// The `remuda` program: parses the command line and runs the chosen subcommand. main.cc only calls this, so that one
// file less includes the command line's heavy headers.
#pragma once

namespace remuda::cli {

/// The program's exit status: 0 done, 1 failed, 2 wrong input, and those in the subcommand's own help.
int run_command_line(int argc, char** argv);

}  // namespace remuda::cli
