// RunOutputs: what rank 0 leaves behind when a run has ended, besides the report: weights, a sample.
#pragma once

#include <optional>

#include "base/file.h"
#include "base/result.h"
#include "job/train_job.h"
#include "train/events.h"
#include "train/run_report.h"
#include "train/weights.h"

namespace remuda::train {

class RunOutputs {
 public:
  /// Before training: an error when what the job asks for cannot be written later. The job must outlive it.
  static Result<RunOutputs> create(const job::TrainJob& job, Model& model);

  /// After training, once: writes the weights unless no step was made, or what was made is not finite, so that good
  /// ones are not replaced by those; generates the sample unless the run was stopped; where the device has no room for
  /// that, or the weights are not written, the report says so. Tells both to the report, and sends `output` events all
  /// the while, as this may take long.
  Result<void> write(Model& model, RunReport& report, const Events& events, const ValuesOf& values_of = as_it_is);

 private:
  explicit RunOutputs(const job::TrainJob& job) : job_(job) {}
  const job::TrainJob& job_;
  std::optional<PendingFile> weights_;
};

}  // namespace remuda::train
