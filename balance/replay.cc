#include "balance/replay.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace remuda::balance {
namespace {

double slowest(const std::vector<double>& seconds) { return *std::max_element(seconds.begin(), seconds.end()); }

bool is_whole(const TimedStep& step, int global_batch) {
  return std::accumulate(step.shares.begin(), step.shares.end(), 0) == global_batch;
}

}  // namespace

Result<Replay> Replay::of(const StepTimes& times, std::string name) {
  Replay replay;
  replay.scenario_ = {.name = std::move(name), .devices = {}, .global_batch = times.head.global_batch};
  replay.devices_ = times.head.devices;
  for (const TimedDevice& device : times.head.devices) {
    if (device.alone.empty()) return failed(fmt::format("{} was not measured alone", device.id));
    replay.scenario_.devices.push_back(fit_line(device.alone));
  }
  for (const TimedStep& step : times.steps) {
    if (!is_whole(step, times.head.global_batch)) continue;
    for (size_t i = 0; i < step.shares.size(); ++i)
      if (step.shares[i] == 0 || step.compute_s[i] <= 0)
        return failed(fmt::format("{} has no time in step {}", times.head.devices[i].id, step.step));
    replay.steps_.push_back(step);
  }
  replay.scenario_.steps = replay.steps();
  return replay;
}

std::vector<double> Replay::seconds(int step, std::span<const int> shares) const {
  const TimedStep& recorded = steps_.at(step);
  std::vector<double> seconds(shares.size());
  for (size_t i = 0; i < shares.size(); ++i) {
    const CostLine& line = scenario_.devices[i];
    if (shares[i] > 0) seconds[i] = recorded.compute_s[i] * line.seconds(shares[i]) / line.seconds(recorded.shares[i]);
  }
  return seconds;
}

double Replay::seconds(std::span<const int> shares) const {
  double sum = 0;
  for (int step = 0; step < steps(); ++step) sum += slowest(seconds(step, shares));
  return sum;
}

std::vector<int> Replay::best_fixed_split() const {
  REMUDA_CHECK(devices_.size() == 2, "all splits of two devices can be tried");
  std::vector<int> best;
  double least = std::numeric_limits<double>::infinity();
  for (int first = 0; first <= scenario_.global_batch; ++first) {
    const std::vector<int> shares{first, scenario_.global_batch - first};
    const double took = seconds(shares);
    if (took < least) least = took, best = shares;
  }
  return best;
}

Outcome Replay::run(Law& law) const {
  for (size_t i = 0; i < devices_.size(); ++i)
    for (const BatchTime& time : devices_[i].alone) law.calibrate(static_cast<int>(i), time.batch, time.seconds);
  Outcome outcome;
  std::vector<int> before;
  for (int step = 0; step < steps(); ++step) {
    const std::vector<int> shares = law.shares(step);
    outcome.changes += step > 0 && shares != before;
    before = shares;
    const std::vector<double> took = seconds(step, shares);
    outcome.seconds += slowest(took);
    law.observe(step, took);
  }
  return outcome;
}

}  // namespace remuda::balance
