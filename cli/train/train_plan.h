// What a run is expected to do on its devices, before it starts: `remuda train --dry-run`, and the report's prediction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/train/train_speeds.h"
#include "cli/train/train_workers.h"
#include "device/inventory.h"
#include "job/train_job.h"

namespace remuda::cli {

/// What a step is expected to take of a device's memory.
struct PlannedMemory {
  double peak_bytes = 0;
  int pieces = 1;  ///< in which the device computes its part: more than the job asks for where it would not fit
};

struct TrainPlan {
  std::vector<double> shares;  ///< of the global batch, one per device
  std::string shares_reason;
  std::vector<double> state_shares;  ///< parts of the parameters that each owns, where it has room; empty: not known
  std::optional<double> samples_per_s, step_s;
  std::string speed_reason;                          ///< where these are from, or why they are not known
  std::vector<std::optional<PlannedMemory>> memory;  ///< one per device; nothing where no run has measured it
  double fetched_bytes = 0, fetch_s = 0;             ///< of sharded parameters, in a pass; 0: not measured
  std::optional<WorkerAbilities> worker;             ///< where it was asked
};

/// `speeds`: samples per second of this very job on each device, where an earlier run measured them; `memory`: what a
/// step took of it; `costs`: and of each device. Where these are all known, and the split is the run's own, it is the
/// one of the law (balance/split.h). Pure.
TrainPlan make_plan(const job::TrainJob& job, const Inventory& inventory,
                    const std::vector<std::optional<double>>& speeds,
                    const std::vector<std::optional<StepMemory>>& memory = {},
                    const std::vector<std::optional<StepCost>>& costs = {});

/// Whether what CPUs will compute in depends on the worker program's libtorch.
bool depends_on_libtorch(const job::TrainJob& job, const Inventory& inventory);

/// A usage error where it is known that no device computes in the type that the job asks for.
Result<void> check_precision(const job::TrainJob& job, const Inventory& inventory, const TrainPlan& plan);

/// For people: the devices with model, share, memory and precision, the step, and the reason of each figure.
/// `devices_reason`: why these devices.
std::string plan_text(const job::TrainJob& job, const Inventory& inventory, const TrainPlan& plan,
                      const std::string& devices_reason);

/// As a report has it: {"shares": [...], "samples_per_s"?, "step_s"?, "reason"}.
Json to_json(const TrainPlan& plan);

}  // namespace remuda::cli
