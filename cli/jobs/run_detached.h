// `remuda run -d`: a job in the background.
#pragma once

#include "run/detach.h"

namespace remuda::cli {

/// Starts what `front` runs and prints its number on stdout; at a terminal also how to see what it writes. Returns the
/// exit code. As detach().
Result<int> run_detached(const std::function<Result<int>(const run::Report&)>& front, bool is_array);

}  // namespace remuda::cli
