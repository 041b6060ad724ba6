// How fast each device was alone at each job, what a step took of it and of its memory, kept between runs: what a
// prediction is made from.
//
// $XDG_STATE_HOME/remuda/train-speeds.json, or ~/.local/state/remuda/train-speeds.json. A speed belongs to a host, a
// device with its cores and its slowdown, and a job: the model, the data, and whatever else decides the work of a
// sample. The global batch, the number of steps and the learning rate do not. Memory also depends on the other devices,
// which hold the rest of the optimizer's state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "balance/cost_line.h"
#include "base/json.h"
#include "device/inventory.h"
#include "job/train_job.h"

namespace remuda::cli {

/// One per device of the job, in samples per second. Nothing for one that no run has measured, and for all of them
/// where the file is missing or damaged.
std::vector<std::optional<double>> known_speeds(const job::TrainJob& job, const Inventory& inventory);

/// What a device takes of a step: for its part of the batch, and to update all parameters if it owned them.
struct StepCost {
  balance::CostLine part;
  double update_s = 0;
};

/// One per device of the job. Nothing for one where no run has measured both, the update with momentum where the job
/// has that, or without.
std::vector<std::optional<StepCost>> known_costs(const job::TrainJob& job, const Inventory& inventory);

/// What a step takes of a device's memory: `held` before it, and besides `fixed`, and `per_sample` of each sample that
/// is computed at a time. With sharded parameters also what each pass fetches from other devices, and in what time.
struct StepMemory {
  double held_bytes = 0, fixed_bytes = 0, per_sample_bytes = 0;
  double fetched_bytes = 0, fetch_s = 0;
};

/// One per device of the job. Nothing for one where no run on these same devices has measured it.
std::vector<std::optional<StepMemory>> known_memory(const job::TrainJob& job, const Inventory& inventory);

/// Adds what the report of this job says of each device: its speed and its steps alone, and its memory where no rank
/// was lost. A file that cannot be understood is not touched.
Result<void> keep_speeds(const Json& report, const job::TrainJob& job, const Inventory& inventory);

}  // namespace remuda::cli
