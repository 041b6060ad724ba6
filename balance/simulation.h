// A simulated server whose devices' true speeds are known: compares ways of splitting with an oracle.
//
// Pure and repeatable: times come from a seeded generator whose every number is defined here, so that they are the same
// on every machine. All laws see the same noise for the same seed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "balance/cost_line.h"

namespace remuda::balance {

/// Devices that take fixed + per_sample * batch seconds, times lognormal noise, and sometimes times 1.5 to 3.
struct Scenario {
  std::string name;
  std::vector<CostLine> devices;
  int global_batch = 96;
  int steps = 400;
  int least_share = 0;
  double noise = 0.03;           ///< standard deviation of the logarithm of a time
  double spike_chance = 0;       ///< of each device in each step
  int slowed_device = 1;         ///< this one becomes slower,
  double slowed_factor = 1.8;    ///< by this factor,
  int slowed_from = 200;         ///< from this step on
  std::vector<int> calibration;  ///< batch sizes that each device is measured at before the first step
};

/// A way of splitting: gives the shares of each step, and receives each device's time in it.
class Law {
 public:
  virtual ~Law() = default;
  virtual void calibrate(int /*device*/, int /*batch*/, double /*seconds*/) {}
  virtual std::vector<int> shares(int step) = 0;
  virtual void observe(int step, std::span<const double> seconds) = 0;
};

using MakeLaw = std::unique_ptr<Law> (*)(const Scenario&);

std::unique_ptr<Law> even_law(const Scenario& scenario);
/// Shares in proportion to samples per second of the last step, every step.
std::unique_ptr<Law> proportional_law(const Scenario& scenario);
/// Balancer with its default options.
std::unique_ptr<Law> balancer_law(const Scenario& scenario);
/// Knows the devices' true speeds and when they change.
std::unique_ptr<Law> oracle_law(const Scenario& scenario);

/// The result of one run. A time is near when it is within 5 % of the best one without noise.
struct Outcome {
  double seconds = 0;        ///< sum over steps of the slowest device's time
  double ideal_seconds = 0;  ///< the same with the best shares and no noise
  int changes = 0;
  int near_after = 0;        ///< steps from the start until the shares' noise-free time is near; all if never
  int near_again_after = 0;  ///< the same from slowed_from on
};

Outcome simulate(const Scenario& scenario, Law& law, uint64_t seed);

/// Means over seeds 1..seeds, unless stated otherwise.
struct Verdict {
  double efficiency = 0;  ///< ideal time / time
  double of_oracle = 0;   ///< the oracle's time / time, under the same noise
  double changes = 0;
  int most_changes = 0;
  double near_after = 0;
  double near_again_after = 0;
};

Verdict judge(const Scenario& scenario, MakeLaw law, int seeds = 40);

/// The cases that the project's tests and its bench both run: each with 3 % noise, with spikes as well, and with 10 %
/// noise and spikes. The first three define the requirement.
std::vector<Scenario> standard_scenarios();

}  // namespace remuda::balance
