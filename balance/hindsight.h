// Hindsight: how long the last steps would have taken with other shares.
//
// The medians of each device do not show that devices slow down together (which should move no share), nor that a
// device with a long-tailed distribution delays the others more than its median. Here the steps themselves are
// compared, pair by pair, so that common changes cancel out, and the mean of the slowest device's time decides.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "balance/cost_line.h"
#include "balance/solve.h"

namespace remuda::balance {

/// A fraction of the step time that other shares would have saved, and the standard error of it.
struct HindsightGain {
  double gain = 0;
  double error = 0;
};

class Hindsight {
 public:
  /// Adds each device's time in a step with these shares; positive where the share is not 0.
  void add(std::span<const int> shares, std::span<const double> seconds);
  /// Drops all except the `newest` newest steps.
  void keep(int newest);

  int steps() const { return static_cast<int>(steps_.size()); }
  /// `next` against `present`; the lines say how a device's time depends on its share. Only with at least one step.
  HindsightGain gain(std::span<const CostLine> lines, std::span<const int> present, std::span<const int> next) const;
  /// The shares within the bounds that would have been fastest, searched from `start`, which is within them. Only with
  /// at least one step.
  std::vector<int> best(std::span<const CostLine> lines, std::span<const Bounds> bounds, std::vector<int> start) const;

 private:
  struct Step {
    std::vector<int> shares;
    std::vector<double> seconds;
  };
  /// By how much each device's time was off its line, step by step. 1 where it had no samples.
  std::vector<double> factors(std::span<const CostLine> lines) const;

  std::deque<Step> steps_;
};

}  // namespace remuda::balance
