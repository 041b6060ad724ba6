// The command that a subcommand runs: all arguments after its own flags, unchanged.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace remuda::cli {

/// Declares NAME: the arguments from the first one that is not a flag, or after --. No option of CLI11 can do this:
/// those that take any number of values split "[a,b]" in two.
void add_job_command(CLI::App& command, const char* name, const char* meaning);

/// After parsing. A usage error for a flag that does not exist; empty when there is no command.
Result<std::vector<std::string>> job_command(const CLI::App& command);

}  // namespace remuda::cli
