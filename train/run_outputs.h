// RunOutputs: what rank 0 leaves behind when a run has ended, besides the report: weights, a sample.
#pragma once

#include <optional>

#include "base/file.h"
#include "base/result.h"
#include "base/write_again.h"
#include "job/train_job.h"
#include "train/events.h"
#include "train/run_report.h"
#include "train/weights.h"

namespace remuda::train {

class RunOutputs {
 public:
  /// Before training: an error when what the job asks for cannot be written later. The job must outlive it. `pause_s`:
  /// before weights that could not be written are tried again.
  static Result<RunOutputs> create(const job::TrainJob& job, Model& model, double pause_s = kWritePause_s);

  /// After training, once: writes the weights unless no step was made, or what was made is not finite, so that good
  /// ones are not replaced by those; generates the sample unless the run was stopped. Weights that cannot be written
  /// are tried again (base/write_again.h); where that does not help, or the device has no room for the sample, the
  /// report says so. Tells both to the report, and sends `output` events all the while, as this may take long. An
  /// error: a rank was lost.
  Result<void> write(Model& model, RunReport& report, const Events& events, const ValuesOf& values_of = as_it_is);

 private:
  RunOutputs(const job::TrainJob& job, double pause_s) : job_(job), pause_s_(pause_s) {}
  Result<void> keep_weights(Model& model, RunReport& report, const Events& events, const ValuesOf& values_of);
  Result<PendingFile> weights_file();

  const job::TrainJob& job_;
  const double pause_s_;
  std::optional<PendingFile> weights_;  ///< until they are tried for the first time
};

}  // namespace remuda::train
