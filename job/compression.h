// What of a job goes together with which compression of what hosts send each other.
#pragma once

#include <string>

#include "job/train_job.h"

namespace remuda::job {

/// What of the job this compression does not go together with, and why, as in "train.average"; empty: nothing. With
/// `automatic`, which chooses among those that do, and `none`, all does.
std::string conflict_with(Compression compression, const TrainJob& job);

}  // namespace remuda::job
