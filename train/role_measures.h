// Role measures: what the forecast of roles (balance/role_forecast.h) takes of a device, from what its rank has
// measured alone. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "balance/role_forecast.h"
#include "train/alone_run.h"
#include "train/memory_plan.h"

namespace remuda::train {

/// What a rank tells the others of its device. Sent as raw bytes.
struct OwnMeasures {
  double update_s = 0;  ///< of all parameters, if it owned them; 0: not known
  double make_s = 0;    ///< of a sample, by all of its threads
  double memory_bytes = 0;
  int32_t makes_in_turn = 0, is_cpu = 0;
};

/// Of a device of so much memory, whose rank makes samples by so many threads; by none: before it computes them.
OwnMeasures own_measures(const AloneCosts& costs, int threads, bool is_cpu, double memory_bytes);

/// What steps took without the update, of those that were finite.
std::vector<balance::BatchTime> part_times(const std::vector<balance::BatchTime>& alone, double update_s);

/// `alone`: what steps of some sizes took, updates of all parameters and the sleep of a slowdown included. `owned`: the
/// part of the parameters that it owned now, `state_bytes`: what the state of all of them takes.
balance::MeasuredDevice measured(const OwnMeasures& own, const std::vector<balance::BatchTime>& alone, double owned,
                                 const MemoryNeed& need, double state_bytes, double slowdown);

}  // namespace remuda::train
