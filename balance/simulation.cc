#include "balance/simulation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "balance/balancer.h"
#include "balance/shares.h"
#include "balance/solve.h"
#include "base/check.h"

namespace remuda::balance {
namespace {

/// The standard library's distributions differ between libraries; its engine does not.
class Noise {
 public:
  explicit Noise(uint64_t seed) : engine_(seed) {}
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }
  /// Box-Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 engine_;
};

std::vector<CostLine> true_lines(const Scenario& scenario, int step) {
  std::vector<CostLine> lines = scenario.devices;
  if (step < scenario.slowed_from) return lines;
  CostLine& slowed = lines[scenario.slowed_device];
  slowed.fixed_s *= scenario.slowed_factor;
  slowed.per_sample_s *= scenario.slowed_factor;
  return lines;
}

std::vector<Bounds> bounds_of(const Scenario& scenario) {
  return std::vector<Bounds>(scenario.devices.size(), Bounds{.low = scenario.least_share});
}

std::vector<int> best_shares(const Scenario& scenario, int step) {
  return solve_min_max(true_lines(scenario, step), scenario.global_batch, bounds_of(scenario));
}

class FixedLaw : public Law {
 public:
  FixedLaw(std::vector<int> before, std::vector<int> after, int turn)
      : before_(std::move(before)), after_(std::move(after)), turn_(turn) {}
  std::vector<int> shares(int step) override { return step < turn_ ? before_ : after_; }
  void observe(int, std::span<const double>) override {}

 private:
  std::vector<int> before_, after_;
  int turn_;
};

class ProportionalLaw : public Law {
 public:
  explicit ProportionalLaw(const Scenario& scenario) : total_(scenario.global_batch), least_(scenario.least_share) {
    shares_ = apportion(total_, std::vector<int>(scenario.devices.size(), 1));
  }
  std::vector<int> shares(int) override { return shares_; }
  void observe(int, std::span<const double> seconds) override {
    std::vector<double> speeds;
    for (size_t i = 0; i < shares_.size(); ++i) speeds.push_back(seconds[i] > 0 ? shares_[i] / seconds[i] : 0);
    shares_ = apportion(total_ - least_ * static_cast<int>(speeds.size()), speeds);
    for (int& share : shares_) share += least_;
  }

 private:
  int total_, least_;
  std::vector<int> shares_;
};

class BalancerLaw : public Law {
 public:
  explicit BalancerLaw(const Scenario& scenario)
      : balancer_({.global_batch = scenario.global_batch, .bounds = bounds_of(scenario)}) {}
  void calibrate(int device, int batch, double seconds) override { balancer_.calibrate(device, batch, seconds); }
  std::vector<int> shares(int step) override {
    if (step == 0) REMUDA_CHECK(balancer_.start(), "no bound is in the way");
    return balancer_.shares();
  }
  void observe(int step, std::span<const double> seconds) override { balancer_.observe(step, seconds); }

 private:
  Balancer balancer_;
};

/// One device's time with its noise. It uses the same number of random numbers whatever the scenario and the share.
double measure(const Scenario& scenario, const CostLine& line, int share, Noise& noise) {
  const double wobble = std::exp(scenario.noise * noise.normal());
  const bool spiked = noise.uniform() < scenario.spike_chance;
  const double spike = 1.5 + 1.5 * noise.uniform();
  return share == 0 ? 0 : line.seconds(share) * wobble * (spiked ? spike : 1);
}

}  // namespace

std::unique_ptr<Law> even_law(const Scenario& scenario) {
  const std::vector<int> even = apportion(scenario.global_batch, std::vector<int>(scenario.devices.size(), 1));
  return std::make_unique<FixedLaw>(even, even, 0);
}

std::unique_ptr<Law> proportional_law(const Scenario& scenario) { return std::make_unique<ProportionalLaw>(scenario); }

std::unique_ptr<Law> balancer_law(const Scenario& scenario) { return std::make_unique<BalancerLaw>(scenario); }

std::unique_ptr<Law> oracle_law(const Scenario& scenario) {
  return std::make_unique<FixedLaw>(best_shares(scenario, 0), best_shares(scenario, scenario.slowed_from),
                                    scenario.slowed_from);
}

Outcome simulate(const Scenario& scenario, Law& law, uint64_t seed) {
  Noise noise(seed);
  for (const int batch : scenario.calibration)
    for (int i = 0; i < static_cast<int>(scenario.devices.size()); ++i)
      law.calibrate(i, batch, measure(scenario, scenario.devices[i], batch, noise));

  Outcome outcome{.near_after = scenario.steps, .near_again_after = scenario.steps - scenario.slowed_from};
  std::vector<int> before;
  for (int step = 0; step < scenario.steps; ++step) {
    const std::vector<CostLine> lines = true_lines(scenario, step);
    const std::vector<int> shares = law.shares(step);
    outcome.changes += step > 0 && shares != before;
    before = shares;

    std::vector<double> seconds;
    for (size_t i = 0; i < lines.size(); ++i) seconds.push_back(measure(scenario, lines[i], shares[i], noise));
    const double ideal = slowest_s(lines, best_shares(scenario, step));
    outcome.seconds += *std::max_element(seconds.begin(), seconds.end());
    outcome.ideal_seconds += ideal;
    if (slowest_s(lines, shares) <= 1.05 * ideal) {
      outcome.near_after = std::min(outcome.near_after, step);
      const int again = step - scenario.slowed_from;
      if (again >= 0) outcome.near_again_after = std::min(outcome.near_again_after, again);
    }
    law.observe(step, seconds);
  }
  return outcome;
}

Verdict judge(const Scenario& scenario, MakeLaw make_law, int seeds) {
  Verdict verdict;
  for (int seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = simulate(scenario, *make_law(scenario), seed);
    const Outcome oracle = simulate(scenario, *oracle_law(scenario), seed);
    verdict.efficiency += outcome.ideal_seconds / outcome.seconds / seeds;
    verdict.of_oracle += oracle.seconds / outcome.seconds / seeds;
    verdict.changes += static_cast<double>(outcome.changes) / seeds;
    verdict.most_changes = std::max(verdict.most_changes, outcome.changes);
    verdict.near_after += static_cast<double>(outcome.near_after) / seeds;
    verdict.near_again_after += static_cast<double>(outcome.near_again_after) / seeds;
  }
  return verdict;
}

std::vector<Scenario> standard_scenarios() {
  const std::vector<CostLine> four{{4e-3, .20e-3}, {9e-3, .45e-3}, {14e-3, 1.1e-3}, {6e-3, .30e-3}};
  const std::vector<CostLine> two{{2e-3, .10e-3}, {2e-3, .30e-3}};
  std::vector<CostLine> light = four, eight = four;
  for (CostLine& line : light) line.fixed_s /= 10;
  for (const CostLine& line : four) eight.push_back({line.fixed_s * 0.7, line.per_sample_s * 1.3});

  std::vector<Scenario> scenarios;
  const auto add = [&](Scenario scenario) {
    const std::string name = scenario.name;
    scenario.name = name + ", 3 % noise";
    scenarios.push_back(scenario);
    scenario.name += " and spikes";
    scenario.spike_chance = 0.02;
    scenarios.push_back(scenario);
    scenario.name = name + ", 10 % noise and spikes";
    scenario.noise = 0.10;
    scenarios.push_back(scenario);
  };
  add({.name = "4 devices", .devices = four});
  add({.name = "4 devices calibrated", .devices = four, .calibration = {8, 24, 48}});
  add({.name = "4 devices never idle", .devices = four, .least_share = 1});
  add({.name = "4 devices small fixed costs", .devices = light});
  add({.name = "2 devices 1:3", .devices = two, .global_batch = 64});
  add({.name = "8 devices", .devices = eight, .global_batch = 256});
  return scenarios;
}

}  // namespace remuda::balance
