// The flag of `remuda run --array`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "run/run_spec.h"

namespace remuda::cli {

/// Declares --array. `text` must live as long as the command's action.
void add_array_option(CLI::App& command, std::string& text, const char* group);

/// Puts the indices into `spec`. A usage error for flags that do not go together.
Result<void> add_array(const std::string& text, run::RunSpec& spec);

}  // namespace remuda::cli
