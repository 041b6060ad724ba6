// `remuda train --compare KEY=VALUE`: runs a job as it is (A) and with other values (B), in turns.
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/train/train_check.h"

namespace remuda::cli {

/// The flags of each way to run the job: these, or with --compare those of A and of B.
std::vector<TrainFlags> ways_of(const TrainFlags& flags);

/// Refuses a comparison whose flags do not go together, or whose B is no job or the same as A. To be called before
/// devices are asked for.
Result<void> check_comparison(const TrainFlags& flags, const AskedRun& asked);

/// Makes the runs, which write no files of their own, and prints what the difference is worth. The first failure of a
/// run ends it; a signal ends it with what is known by then. Returns the exit status.
Result<int> compare(const TrainFlags& flags, const AskedRun& asked);

}  // namespace remuda::cli
