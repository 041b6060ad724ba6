// How a run will share out its steps, as far as that is known before it starts.
#pragma once

#include <optional>
#include <vector>

#include "balance/split.h"
#include "cli/train/train_speeds.h"
#include "device/inventory.h"
#include "job/train_job.h"

namespace remuda::cli {

/// By the law (balance/split.h), where it is the run that decides, and the costs of all its devices are known. As in
/// the run, the state is owned in proportion to memory unless it may move, and a step is much shorter where it does.
/// How large the state is, is not known here: it is taken to fit wherever it goes. Pure.
std::optional<balance::Split> split_by_law(const job::TrainJob& job, const Inventory& inventory,
                                           const std::vector<std::optional<StepCost>>& costs);

}  // namespace remuda::cli
