// The command that a subcommand runs: all arguments after its own flags, unchanged.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "confine/visibility.h"
#include "process/affinity.h"

namespace remuda::cli {

/// Declares NAME: the arguments from the first one that is not a flag, or after --. No option of CLI11 can do this:
/// those that take any number of values split "[a,b]" in two.
void add_job_command(CLI::App& command, const char* name, const char* meaning);

/// After parsing. A usage error for a flag that does not exist; empty when there is no command.
Result<std::vector<std::string>> job_command(const CLI::App& command);

/// Becomes the command, with this environment in addition to its own, on these cores where it may use them. Where there
/// is no such program, says so on stderr and returns the exit status for that.
int become(std::vector<std::string> command, const confine::Visibility& environment, const process::Affinity& affinity);

}  // namespace remuda::cli
