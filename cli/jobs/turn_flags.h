// The flags that say when a job gets its turn and for how long, of all subcommands that wait for devices.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "run/run_spec.h"

namespace remuda::cli {

inline constexpr const char* kHowItRuns = "How it runs";  ///< the group of the help

struct TurnFlags {
  std::string time_limit;
  int priority = 0;
  bool no_wait = false;
};

/// Declares --priority, --time-limit and --no-wait. `flags` must live as long as the command's action.
void add_turn_options(CLI::App& command, TurnFlags& flags);

/// Gives the job what they ask for; a usage error for what is no time.
Result<void> apply_turn(const TurnFlags& flags, run::RunSpec& spec);

/// Seconds, 0 for an empty text; a usage error that names the flag for what is no time.
Result<double> duration_of(const char* flag, const std::string& text);

}  // namespace remuda::cli
