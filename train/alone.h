// The speed of each device alone, measured before training, one device at a time.
#pragma once

#include <functional>
#include <vector>

#include "balance/cost_line.h"
#include "base/result.h"
#include "comm/communicator.h"

namespace remuda::train {

/// What one rank needs for the measurement.
struct AloneWork {
  int unit = 1;  ///< batches are whole numbers of so many samples, where the global batch has as many
  /// Runs one whole step of `batch` samples (with the optimizer; no result is kept) and returns its seconds, infinite
  /// where the batch does not fit in the device's memory.
  std::function<double(int batch)> trial;
  /// Called on each rank with its own times once they are known.
  std::function<void(const std::vector<balance::BatchTime>&)> measured = [](const auto&) {};
  /// The times of a rank whose device need not be measured, the same on all ranks; null: it is.
  std::function<const std::vector<balance::BatchTime>*(int rank)> known = [](int) { return nullptr; };
  /// Whether the run was asked to stop.
  std::function<bool()> leave = [] { return false; };
  /// Time limit of one device: no trial begins that is expected to end later. The first one, of a single unit, always
  /// runs.
  double limit_s = 20;
  /// How often the other ranks are notified that the device is still measuring; they wait at most this long plus one
  /// trial.
  double sign_every_s = 5;
};

/// The sizes to measure: the whole global batch, as one device would train it, and two smaller ones, so that fixed cost
/// and cost per sample can be separated. Largest first.
std::vector<int> trial_batches(int global_batch, int unit = 1);

/// Measures this device: the sizes of trial_batches(), largest first, as many as the time permits and up to the first
/// that does not fit in memory; 7 trials of each, or fewer where they are long. For a device too slow for the smallest
/// of these, the times of the largest batches that it could try. `sign` is called after each trial with its seconds; it
/// returns false to end the measurement.
Result<std::vector<balance::BatchTime>> measure_device(int global_batch, const AloneWork& work,
                                                       const std::function<Result<bool>(double took_s)>& sign);

/// The times of each rank's device, the same on every rank.
struct AloneTimes {
  std::vector<std::vector<balance::BatchTime>> by_rank;
  bool leaving = false;  ///< a rank was asked to stop: devices after it were not measured
};

/// Collective. While one rank measures, the others sleep.
Result<AloneTimes> measure_alone(comm::Communicator& communicator, int global_batch, const AloneWork& work);

/// Samples/s at the largest batch that was measured and fits; 0 when there is none.
double alone_samples_per_s(const std::vector<balance::BatchTime>& times);

}  // namespace remuda::train
