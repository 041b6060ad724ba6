// The shell that runs this program.
#pragma once

#include "base/result.h"
#include "process/process_id.h"

namespace remuda::cli {

/// The parent; where that was forked from a shell and never became a program of its own, as in $(...) and (...), the
/// shell that it was forked from. A usage error where the parent has ended or cannot be seen.
Result<process::ProcessId> calling_shell();

}  // namespace remuda::cli
