// IdleSteps: when the agent looks at the machine for jobs that do nothing with their devices, and what it tells them
// then, as the policy has it (monitor/idle_chain.h). Their keepers do the rest, as their users; a job that does not end
// in its grace time is ended as others are (holds.h).
#pragma once

#include <optional>
#include <vector>

#include "monitor/idle_chain.h"

namespace remuda::agent {

/// One thread. Times are those of the steady clock.
class IdleSteps {
 public:
  /// How often the machine is to be read for this: kNever_s where the policy has no such steps, or nobody holds a
  /// device.
  static double every_s(const policy::Idle& policy, const pool::PoolState& pool);

  /// The machine was read.
  std::vector<pool::RecordIdle> look(const policy::Idle& policy, const Inventory& machine, const pool::PoolState& pool,
                                     double now_s, double wall_s);

 private:
  std::optional<monitor::IdleJobs> jobs_;
  monitor::IdleChain chain_;
};

}  // namespace remuda::agent
