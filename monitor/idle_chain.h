// IdleChain: the steps of the administrator's policy against jobs that hold devices and do next to nothing with them:
// warn, signal, release, in that order and never one without those before it. Pure.
//
//   a job idles over `warn_after`      its user is warned
//   and still does, later              it gets a signal, to write a checkpoint
//   and still does, later              it is asked to end, as by a time limit
//   it works again, or nobody knows    the warning is withdrawn, and all begins anew
//
// Later is by the differences of the policy's times, from the step before on: so a policy that was made stricter, or an
// agent that was started anew, takes no step early. A job that waits for another rank of its run does not idle.
#pragma once

#include <map>
#include <vector>

#include "monitor/idle_jobs.h"
#include "policy/policy.h"
#include "pool/operation.h"

namespace remuda::monitor {

/// One thread. The pool keeps which step a job has seen (Job::idle); this only decides on the next one.
class IdleChain {
 public:
  /// What is to be told to jobs, by what `jobs` has seen up to `now_s`, a steady time; `wall_s`: the same moment since
  /// 1970. What could not be applied is given again.
  std::vector<pool::RecordIdle> next(const IdleJobs& jobs, const policy::Idle& policy, const Inventory& machine,
                                     const pool::PoolState& pool, double now_s, double wall_s);

 private:
  struct Taken {
    pool::IdleStep step = pool::IdleStep::none;
    double at_s = 0;  ///< when it was taken, or seen first, on the steady clock
    pool::IdleStep told = pool::IdleStep::none;
    double told_s = 0;  ///< when that was told as the next one, which may not have been applied
  };
  std::map<int64_t, Taken> taken_;  ///< by job
};

}  // namespace remuda::monitor
