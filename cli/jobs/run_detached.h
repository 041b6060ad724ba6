// `remuda run -d`: a job in the background.
#pragma once

#include "run/detach.h"

namespace remuda::cli {

/// Starts the job that `front` runs and prints its number on stdout; at a terminal also the command that shows its
/// output. Returns the exit code. As detach().
Result<int> run_detached(const std::function<Result<int>(const run::Report&)>& front, bool is_array);

}  // namespace remuda::cli
