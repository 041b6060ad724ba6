// Supervisor: runs the ranks of one job, as processes, until all have ended.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "workers/regroup.h"
#include "workers/root_cause.h"
#include "workers/watched_rank.h"

namespace remuda::workers {

/// How long the supervisor waits before its next step. Each of its waits has one of these limits.
struct Patience {
  double report_s = 1;    ///< after the first failure, for the other ranks to report what they saw
  double end_s = 3;       ///< after SIGTERM to the ranks of a failed job, before SIGKILL
  double stop_s = 10;     ///< after Ctrl-C, for the ranks to stop together, before SIGKILL; see RankListener::step_s
  double regroup_s = 60;  ///< after Ctrl-C, for those that are left when a rank is lost, to take up the run's state
  double silence_s = 60;  ///< for a rank that works without an event when all others are done, or makes an output, as
                          ///< the first one may once it has made all steps; or that is done and does not end
};

struct Outcome {
  std::optional<Failure> failure;
  int signal = 0;  ///< SIGINT, SIGTERM or SIGHUP when the user stopped the job; the ranks may still have ended well
  bool stopped() const { return signal != 0; }
};

/// Starts one process per rank, in rank order, and returns when all have ended.
///
/// A run that has reported is done, and so is a rank that has said so, however its process ends. When a rank fails
/// before that, and the first one has still need of it, the others are ended, unless the run is elastic: then those
/// that are left are told so, on REMUDA_MEMBERS_FD, and meet anew; what is left of the lost ones is killed. So they are
/// when the user has stopped the job, as its state is to be kept. The first SIGINT, SIGTERM or SIGHUP (a terminal that
/// is closed; unless the process ignores it) is forwarded to the ranks as SIGTERM, so that they stop together and send
/// `done`, after an output that one of them may be making; a second one kills them, except a SIGHUP that follows
/// another signal, and a SIGTERM that follows a SIGTERM: who holds the lease (`remuda run`, Slurm) repeats it before
/// SIGKILL. These signals are blocked in the calling thread meanwhile. An error means that a rank could not be started;
/// those already started have been ended then.
Result<Outcome> supervise(std::vector<RankSpec> ranks, const RankListener& listener, const Patience& patience = {},
                          Elasticity elasticity = {});

}  // namespace remuda::workers
