// The flags of `remuda run`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/jobs/request_flags.h"
#include "cli/jobs/turn_flags.h"
#include "cli/machine.h"
#include "run/run_spec.h"

namespace remuda::cli {

struct RunFlags : TurnFlags {
  MachineFlags machine;
  RequestFlags request;
  std::string tasks;  ///< file of commands; empty: none
  std::string array, name, stop_signal = "TERM", checkpoint_signal, grace = "30", log;
  std::string begin, at_end, mail;
  int restarts = 0;
  std::vector<int64_t> after, after_any;
  std::vector<int> restart_on;
  int64_t takes_over = 0;
  bool dry_run = false, quiet = false, each = false, detach = false, fail_fast = false;
  bool requeue = false, preemptible = false, isolate = false, with_parent = false;
  const CLI::App* app = nullptr;  ///< knows the command
};

/// Declares those that every job has, whatever it runs: those of its turn, --name, --detach and so on.
void add_job_options(CLI::App& command, RunFlags& flags);

/// Declares them all, and the command. `flags` must live as long as the command's action.
void add_run_options(CLI::App& command, RunFlags& flags);

/// What they ask for, except what it runs.
Result<run::RunSpec> make_job_spec(const RunFlags& flags);

/// What they ask for, with the tasks read from their file. A usage error for what cannot be read, a signal or a time
/// that is none, and flags that do not go together.
Result<run::RunSpec> make_run_spec(const RunFlags& flags);

}  // namespace remuda::cli
