#include "agent/idle_steps.h"

#include <algorithm>

#include "base/clock.h"

namespace remuda::agent {

double IdleSteps::every_s(const policy::Idle& policy, const pool::PoolState& pool) {
  constexpr double kOften_s = 1, kSeldom_s = 10, kReadings = 60;
  if (!policy.is_on() || pool.leases.empty()) return kNever_s;
  return std::clamp(policy.warn_after_s / kReadings, kOften_s, kSeldom_s);
}

std::vector<pool::RecordIdle> IdleSteps::look(const policy::Idle& policy, const Inventory& machine,
                                              const pool::PoolState& pool, double now_s, double wall_s) {
  if (!jobs_ || jobs_->window_s() != policy.warn_after_s) jobs_.emplace(policy.warn_after_s);
  if (policy.is_on()) jobs_->look(now_s, wall_s, machine, pool);
  return chain_.next(*jobs_, policy, machine, pool, now_s, wall_s);
}

}  // namespace remuda::agent
