// Checks the files that a training run will write before any worker starts.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "job/train_job.h"

namespace remuda::cli {

/// Refuses an output in place of a file that is read, or of another output, which it would destroy. `written` has the
/// flag or the key of each; files without a name do not count.
Result<void> check_distinct(std::span<const job::Setting> written, std::span<const std::string> read);

/// Refuses an output that cannot be written later, which would be missed after hours of training. Leaves nothing
/// behind.
Result<void> check_writable(std::span<const job::Setting> written);

}  // namespace remuda::cli
