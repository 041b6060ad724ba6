// The command that a subcommand runs: all that stands behind its own flags, each argument as it is.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace remuda::cli {

/// Declares NAME: what follows the first argument that is no flag, or --. No option of CLI11 does for this: those that
/// take any number of values split "[a,b]" in two.
void add_job_command(CLI::App& command, const char* name, const char* meaning);

/// After parsing. A usage error for a flag that does not exist; empty when there is no command.
Result<std::vector<std::string>> job_command(const CLI::App& command);

}  // namespace remuda::cli
