// What a training job reads, looked at before any worker starts.
#pragma once

#include "base/result.h"
#include "job/train_job.h"

namespace remuda::cli {

/// Opens the data and the model's file once: usage errors name the file. Also refuses test images of another shape or
/// with more classes than the training images, and a global batch of less than one sample for each device.
Result<void> check_inputs(const job::TrainJob& job);

}  // namespace remuda::cli
