// What jobs that do nothing with their devices are told.
#include "agent/service.h"
#include "base/clock.h"

namespace remuda::agent {

/// Where the policy cannot be read, nothing is taken back, and nothing comes next. What could not be recorded is told
/// at the next reading.
void Service::record_idle(double now_s) {
  if (!view_.policy()) return;
  const auto told = idle_.look(view_.policy()->idle, view_.inventory(), pool_.seen(), now_s, wall_s());
  for (const pool::RecordIdle& one : told) (void)change(one, now_s);
}

double Service::idle_every_s() const {
  return view_.policy() ? IdleSteps::every_s(view_.policy()->idle, pool_.seen()) : kNever_s;
}

}  // namespace remuda::agent
