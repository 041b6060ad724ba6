// The sharing daemons of jobs, which come and go with their leases.
#include "agent/service.h"

namespace remuda::agent {

void Service::find_daemons(const pool::PoolState& state, double now_s) {
  for (const SharingDaemons::Daemon& one : daemons_.find_again(state, now_s))
    (void)enforcement_.let(one.number, one.cgroup, nodes_of(view_.inventory(), {one.device}));
}

/// What is to be recorded of the job.
std::vector<pool::Operation> Service::begin_daemons(const pool::Job& job, double now_s) {
  const bool is_allowed = view_.policy() && view_.policy()->mps;
  const auto begun = daemons_.begin(pool_.seen(), job, view_.inventory(), is_allowed, now_s);
  for (const SharingDaemons::Daemon& one : daemons_.take_started())
    (void)enforcement_.let(one.number, one.cgroup, nodes_of(view_.inventory(), {one.device}));
  return begun ? std::vector<pool::Operation>{*begun} : std::vector<pool::Operation>{};
}

void Service::end_daemons(double now_s) {
  for (const int64_t number : daemons_.see(pool_.seen(), now_s)) enforcement_.withdraw(number);
}

}  // namespace remuda::agent
