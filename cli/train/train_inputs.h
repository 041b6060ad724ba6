// Checks the files of a training job before any worker starts.
#pragma once

#include <string>

#include "base/result.h"
#include "job/train_job.h"

namespace remuda::cli {

/// Opens the data, the model's file and its weights once: usage errors name the file, and where it is of another kind
/// (CSV, a file of torch.save()) the formats that can be read. Of image files, the first of each class is decoded.
/// Whether the weights fit the model only a worker can say. Also refuses test images of another shape or with other
/// classes than the training images, and a global batch of less than one sample for each device.
Result<void> check_inputs(const job::TrainJob& job);

}  // namespace remuda::cli
