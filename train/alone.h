// What each device does by itself, measured before training, one device at a time.
#pragma once

#include <functional>
#include <vector>

#include "balance/cost_line.h"
#include "base/result.h"
#include "comm/communicator.h"

namespace remuda::train {

/// The sizes that are measured: the whole global batch, as one device would train it, and two smaller ones, so that
/// fixed cost and cost per sample can be told apart.
std::vector<int> trial_batches(int global_batch);

/// Collective. While one rank measures, the others sleep. `trial(batch)` runs one whole step (optimizer too, nothing of
/// it kept) and gives its seconds, infinite where the batch does not fit in the device's memory. `measured` is called
/// on each rank with its own times when they are known. Returns each rank's times, the same list on every rank.
Result<std::vector<std::vector<balance::BatchTime>>> measure_alone(
    comm::Communicator& communicator, int global_batch, const std::function<double(int batch)>& trial,
    const std::function<void(std::vector<balance::BatchTime>)>& measured);

/// Samples/s at the largest batch that fits.
double alone_samples_per_s(const std::vector<balance::BatchTime>& times);

}  // namespace remuda::train
