// Tests only: all ways to share a step out, judged by what split.h says a step takes, in other words than its code.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "balance/split.h"

namespace remuda::balance::testing {

inline constexpr double kMilli = 1e-3, kMebi = 1 << 20;

/// Infinite where a part does not fit, or is not allowed.
inline double step_s(const std::vector<SplitDevice>& devices, const SplitTask& task, const std::vector<int>& shares,
                     const std::vector<double>& state) {
  double part_s = task.making_s, exchange_s = 0, update_s = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    const SplitDevice& device = devices[i];
    const int share = shares[i];
    if (share > 0 && (share > device.samples.high || !takes_samples(device.role))) return INFINITY;
    if (share < device.samples.low || state[i] > device.most_state + 1e-9) return INFINITY;
    if (device.role == Role::preprocess && state[i] > 0) return INFINITY;
    if (device.memory_bytes > 0 && state[i] > 0 &&
        task.state.whole + state[i] * task.state.owned > 0.9 * device.memory_bytes + 1)
      return INFINITY;
    int pieces = share > 0 ? 1 : 0;
    if (device.room_bytes > 0) {
      const double left = device.room_bytes - device.held_bytes - state[i] * task.state.owned;
      if (left < -1) return INFINITY;
      if (share > 0) {
        const int most = int(std::floor((left - device.fixed_bytes) / device.sample_bytes + 1e-9));
        if (most < 1) return INFINITY;
        while ((share + pieces - 1) / pieces > most) pieces *= 2;
        pieces = std::min(pieces, share);
      }
    }
    part_s = std::max(part_s, pieces * device.compute.fixed_s + share * device.compute.per_sample_s);
    exchange_s = std::max(exchange_s, share > 0 || state[i] > 0 ? device.exchange_s : device.receive_s);
    update_s = std::max(update_s, state[i] * device.update_s);
  }
  return part_s + exchange_s + update_s;
}

/// Each way to cut `total` into `parts`.
inline void for_each_cut(int total, size_t parts, std::vector<int>& cut,
                         const std::function<void(const std::vector<int>&)>& visit) {
  if (cut.size() + 1 == parts) {
    cut.push_back(total);
    visit(cut);
    cut.pop_back();
    return;
  }
  for (int first = 0; first <= total; ++first) {
    cut.push_back(first);
    for_each_cut(total - first, parts, cut, visit);
    cut.pop_back();
  }
}

/// The shortest step of all, with the state in whole `parts`ths.
inline double least_step_s(const std::vector<SplitDevice>& devices, const SplitTask& task, int parts) {
  double least_s = INFINITY;
  std::vector<int> of_samples, of_state;
  for_each_cut(parts, devices.size(), of_state, [&](const std::vector<int>& cut) {
    std::vector<double> state;
    for (const int part : cut) state.push_back(double(part) / parts);
    for_each_cut(task.batch / task.unit, devices.size(), of_samples, [&](const std::vector<int>& units) {
      std::vector<int> shares;
      for (const int share : units) shares.push_back(share * task.unit);
      least_s = std::min(least_s, step_s(devices, task, shares, state));
    });
  });
  return least_s;
}

}  // namespace remuda::balance::testing
