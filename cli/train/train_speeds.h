// How fast each device was alone at each job, kept between runs: what a prediction is made from.
//
// $XDG_STATE_HOME/remuda/train-speeds.json, or ~/.local/state/remuda/train-speeds.json. A speed belongs to a host, a
// device with its cores and its slowdown, and a job: the model, the data, and whatever else decides the work of a
// sample. The global batch, the number of steps and the learning rate do not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/inventory.h"
#include "job/train_job.h"

namespace remuda::cli {

/// One per device of the job, in samples per second. Nothing for one that no run has measured, and for all of them
/// where the file is missing or damaged.
std::vector<std::optional<double>> known_speeds(const job::TrainJob& job, const Inventory& inventory);

/// Adds what the report of this job says of each device alone. A file that cannot be understood is not touched.
Result<void> keep_speeds(const Json& report, const job::TrainJob& job, const Inventory& inventory);

}  // namespace remuda::cli
