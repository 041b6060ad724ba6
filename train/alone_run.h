// AloneRun: what measure_alone() asks of a rank of a run: whole steps of the run's own model, after which nothing has
// changed.
#pragma once

#include <atomic>
#include <map>

#include "base/result.h"
#include "comm/communicator.h"
#include "job/train_job.h"
#include "train/alone.h"
#include "train/data_parallel.h"
#include "train/events.h"
#include "train/kept_balance.h"
#include "train/local_step.h"

namespace remuda::train {

/// What of a rank's run its device is measured with. All of it outlives the measurement.
struct AloneRun {
  const job::TrainJob& job;
  comm::Communicator& communicator;
  const Events& events;
  const std::atomic<bool>& leave;
  const Samples& samples;
  Model& model;
  LocalStep& local;
  Pace& pace;
  DataParallel& parallel;
  int unit = 1;                       ///< of shares: no batch is measured that has fewer samples
  const KeptBalance* kept = nullptr;  ///< what is known of some of the devices, which are not measured
};

struct AloneCosts {
  AloneTimes times;
  /// Of this rank: samples of the largest piece of a step -> bytes that the step took besides what there was before it.
  /// Empty where the device's allocator does not count.
  std::map<int, double> memory;
  double update_s = 0;  ///< of all parameters, as those are updated that this rank owns; or, where it owns none, as
                        ///< others of its device
  double make_s = 0;    ///< to make a sample, on one thread
};

/// Collective. Measures each device alone; what it does not own, it updates in the same time. Parameters and buffers
/// are not changed; the optimizer is reset.
Result<AloneCosts> measure_devices(const AloneRun& run);

}  // namespace remuda::train
