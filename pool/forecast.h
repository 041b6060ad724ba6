// Forecast: when a waiting job can start, if every job runs for as long as its time limit permits, ends well, and
// nobody submits another. Pure: schedule() itself decides, on a copy of the pool.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "place/held.h"
#include "pool/state.h"
#include "pool/usage.h"

namespace remuda::pool {

/// Where more jobs wait, nothing is known: a pass over a long queue takes milliseconds, and people wait for the answer.
inline constexpr size_t kMostInForecast = 200;

struct Forecast {
  std::optional<double> starts_s;    ///< seconds since 1970
  std::vector<std::string> devices;  ///< ids: on which, then
  size_t ends = 0;                   ///< jobs that have these before, and end at their limits: sooner if one does
  std::string unknown;               ///< a clause, where nothing of that is known: why nobody can know
};

/// Of a waiting job that stands for no array. `held` as for schedule(). What lasts as long as people like is unknown: a
/// job without a time limit, one that is paused, a device that is drained, always reserved or in use without a lease;
/// and an array, since the pool is not told how many of its jobs are still to come. Where hours of others' reservations
/// come before a job would have ended, it starts after them, as the scheduler has it start.
///
/// A job that is over its time limit, or was told to end, does not end well; if it is preemptible, it goes back into
/// the queue and runs once more. The pool does not know who asked for that otherwise (`remuda run --requeue`): such a
/// job counts as ended.
Forecast forecast(PoolState state, int64_t job, const Inventory& inventory, const std::vector<place::Held>& held,
                  const Policy& policy, double now_s);

/// The same of several, in no more time than that of the last to start takes.
std::map<int64_t, Forecast> forecasts(PoolState state, const std::vector<int64_t>& jobs, const Inventory& inventory,
                                      const std::vector<place::Held>& held, const Policy& policy, double now_s);

}  // namespace remuda::pool
