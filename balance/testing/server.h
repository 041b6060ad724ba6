// Tests only: a server with known devices, and a balancer at work on it.
#pragma once

#include <vector>

#include "balance/balancer.h"

namespace remuda::balance::testing {

/// Devices whose times are exact; runs a balancer on them.
struct Server {
  std::vector<CostLine> devices;
  Balancer balancer;
  std::vector<BalanceDecision> decisions;
  int step = 0;

  Server(std::vector<CostLine> lines, BalanceOptions options)
      : devices(std::move(lines)), balancer(std::move(options)) {}

  std::vector<double> seconds() const {
    std::vector<double> seconds;
    for (size_t i = 0; i < devices.size(); ++i)
      seconds.push_back(balancer.shares()[i] == 0 ? 0 : devices[i].seconds(balancer.shares()[i]));
    return seconds;
  }
  void run(int steps) {
    for (; steps > 0; --steps)
      if (const auto decision = balancer.observe(step++, seconds())) decisions.push_back(*decision);
  }
  void calibrate(std::vector<int> batches) {
    for (size_t i = 0; i < devices.size(); ++i)
      for (const int batch : batches) balancer.calibrate(i, batch, devices[i].seconds(batch));
  }
};

inline const std::vector<CostLine> kUnlike{{2e-3, 1e-4}, {2e-3, 3e-4}};

inline BalanceOptions options(BalancePolicy policy, int global_batch, std::vector<Bounds> bounds) {
  return {.policy = policy, .global_batch = global_batch, .bounds = std::move(bounds)};
}

inline Server unlike(BalancePolicy policy = BalancePolicy::automatic) {
  return {kUnlike, options(policy, 80, {{}, {}})};
}

}  // namespace remuda::balance::testing
