// What the command line puts into a job's TOML. Internal to job.
#pragma once

#include <toml++/toml.h>

#include "base/result.h"
#include "job/train_job.h"

namespace remuda::job {

/// Applies settings in order, leaves out files to write, then replaces the devices. Errors name the flag.
Result<void> apply_overrides(const JobOverrides& overrides, toml::table& table);

}  // namespace remuda::job
