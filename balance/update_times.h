// UpdateTimes: how long each device takes to update all of the state, by what it took for the part that it owned in the
// last steps. Pure. One thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace remuda::balance {

class UpdateTimes {
 public:
  explicit UpdateTimes(size_t devices) : seconds_(devices) {}

  /// Of one step: `update_s` that each took for the part that it owned. One that owned nothing shows nothing.
  void add(std::span<const double> update_s, std::span<const double> parts);
  /// The median; nothing until enough steps have shown it.
  std::optional<double> of(size_t device) const;
  /// Other parts may be updated at another speed.
  void clear();

 private:
  std::vector<std::deque<double>> seconds_;  ///< of all state, per device
};

/// Of one value at least; the larger of two.
double median_of(const std::deque<double>& values);

}  // namespace remuda::balance
