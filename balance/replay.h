// Replay: a recorded run played again with other shares, so that a way of splitting is judged on real noise: heavy
// tails, slow drifts, a neighbour that comes and goes.
//
// A device's time at another share is the recorded time of that step, scaled by the line that was fitted to what the
// device did alone. Pure and repeatable.
#pragma once

#include <string>
#include <vector>

#include "balance/simulation.h"
#include "balance/trace.h"

namespace remuda::balance {

class Replay {
 public:
  /// Leaves out steps that did not take the whole global batch. Fails where a device was not measured alone, or took no
  /// samples in a step, as its times are not known then.
  static Result<Replay> of(const Trace& trace, std::string name);

  const std::string& name() const { return scenario_.name; }
  int steps() const { return static_cast<int>(steps_.size()); }
  /// What a law is made from.
  const Scenario& scenario() const { return scenario_; }
  /// What each device takes in a step, counted from 0, with these shares.
  std::vector<double> seconds(int step, std::span<const int> shares) const;
  /// The sum over all steps of the slowest device's time with these shares.
  double seconds(std::span<const int> shares) const;
  /// The split that nobody can know before the run: the one that would have been quickest had it been kept all the
  /// time. Exact. Only for two devices.
  std::vector<int> best_fixed_split() const;
  /// One run of a law, calibrated by what the devices did alone.
  Outcome run(Law& law) const;

 private:
  Replay() = default;
  Scenario scenario_;
  std::vector<TraceDevice> devices_;
  std::vector<TraceStep> steps_;
};

}  // namespace remuda::balance
