// Ending jobs: remuda cancel, and remuda release.
#pragma once

#include "cli/machine.h"

namespace remuda::cli {

/// Cancels jobs, by their names (cli/jobs/job_name.h), for their user or root; `remuda release` is the same. Jobs that
/// cannot be cancelled are named on stderr, and the others are still cancelled: the exit status is not 0 then.
Result<int> cancel_jobs(const MachineFlags& machine, const std::vector<std::string>& names);
Result<int> cancel_jobs(const MachineFlags& machine, const std::vector<int64_t>& jobs);

}  // namespace remuda::cli
