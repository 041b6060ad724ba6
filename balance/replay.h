// Replay: simulates a recorded run with other shares, so that a way of splitting is judged on real noise: heavy tails,
// slow drifts, other programs that start and stop.
//
// A device's time at another share is the recorded time of that step, scaled by the line that was fitted to the
// device's times alone. Pure and repeatable.
#pragma once

#include <string>
#include <vector>

#include "balance/simulation.h"
#include "balance/step_times.h"

namespace remuda::balance {

class Replay {
 public:
  /// Leaves out steps that did not take the whole global batch. Fails where a device was not measured alone, or took no
  /// samples in a step, as its times are not known then.
  static Result<Replay> of(const StepTimes& times, std::string name);

  const std::string& name() const { return scenario_.name; }
  int steps() const { return static_cast<int>(steps_.size()); }
  /// The scenario that a law is made for.
  const Scenario& scenario() const { return scenario_; }
  /// Each device's time in a step, counted from 0, with these shares.
  std::vector<double> seconds(int step, std::span<const int> shares) const;
  /// The sum over all steps of the slowest device's time with these shares.
  double seconds(std::span<const int> shares) const;
  /// The fixed split that would have been fastest, which cannot be known before the run. Exact. Only for two devices.
  std::vector<int> best_fixed_split() const;
  /// One run of a law, calibrated by the devices' times alone.
  Outcome run(Law& law) const;

 private:
  Replay() = default;
  Scenario scenario_;
  std::vector<TimedDevice> devices_;
  std::vector<TimedStep> steps_;
};

}  // namespace remuda::balance
