#include "train/role_measures.h"

#include <algorithm>
#include <cmath>

namespace remuda::train {
namespace {

balance::Making making_of(const OwnMeasures& own) {
  if (own.makes_in_turn) return balance::Making::in_turn;
  return own.is_cpu ? balance::Making::same_cores : balance::Making::beside;
}

/// The line of what forward and backward took; zero where none was measured.
balance::CostLine compute_line(const std::vector<balance::BatchTime>& alone, double update_s) {
  const std::vector<balance::BatchTime> times = part_times(alone, update_s);
  return times.empty() ? balance::CostLine() : balance::fit_line(times);
}

}  // namespace

std::vector<balance::BatchTime> part_times(const std::vector<balance::BatchTime>& alone, double update_s) {
  constexpr double kLeast_s = 1e-9;
  std::vector<balance::BatchTime> times;
  for (balance::BatchTime time : alone) {
    if (!std::isfinite(time.seconds)) continue;
    time.seconds = std::max(kLeast_s, time.seconds - update_s);
    times.push_back(time);
  }
  return times;
}

OwnMeasures own_measures(const AloneCosts& costs, int threads, bool is_cpu, double memory_bytes) {
  return {.update_s = costs.update_s,
          .make_s = costs.make_s / std::max(1, threads),
          .memory_bytes = memory_bytes,
          .makes_in_turn = threads == 0,
          .is_cpu = is_cpu};
}

balance::MeasuredDevice measured(const OwnMeasures& own, const std::vector<balance::BatchTime>& alone, double owned,
                                 const MemoryNeed& need, double state_bytes, double slowdown) {
  balance::MeasuredDevice device{.compute = compute_line(alone, own.update_s),
                                 .update_s = own.update_s,
                                 .make_s = own.make_s,
                                 .making = making_of(own),
                                 .slowdown = slowdown,
                                 .memory_bytes = own.memory_bytes};
  if (need.known == 0) return device;
  device.room_bytes = need.room;
  device.held_bytes = need.held - owned * state_bytes;
  device.least_bytes = need.least;
  device.fixed_bytes = need.fixed;
  device.sample_bytes = need.per_sample;
  return device;
}

}  // namespace remuda::train
