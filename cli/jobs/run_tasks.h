// The flags of `remuda run --tasks`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "run/run_spec.h"

namespace remuda::cli {

struct TaskFlags {
  std::string file;  ///< empty: no tasks
  bool fail_fast = false;
};

/// Declares --tasks and --fail-fast. `flags` must live as long as the command's action.
void add_task_options(CLI::App& command, TaskFlags& flags, const char* group);

/// Reads the file, and puts its tasks in place of the command of `spec`, or into it. A usage error for a wrong file or
/// flags that do not go together.
Result<void> add_tasks(const TaskFlags& flags, run::RunSpec& spec);

}  // namespace remuda::cli
