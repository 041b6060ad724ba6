// JobRun: what happens to a job between the grant of its devices and the end of its processes: their environment,
// output and confinement are prepared, and they are started and monitored; with --restart, several times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "confine/visibility.h"
#include "run/caretaker.h"
#include "run/front_link.h"
#include "run/job_monitor.h"
#include "run/job_output.h"
#include "run/run_board.h"
#include "run/run_spec.h"
#include "run/task_queue.h"
#include "share/job_sharing.h"

namespace remuda::run {

/// What the keeper inherits from its front.
struct Inherited {
  int group = 0;      ///< the front's process group
  sigset_t mask{};    ///< signals that were blocked before the front blocked its own
  int lifeline = -1;  ///< what shows that the keeper lives, for the job's processes (pool/access.h)
};

/// A usage error where the job asks for isolation that this machine cannot give. For a job that still waits.
Result<void> check_isolation(const RunSpec& spec);

/// One thread; the arguments must outlive it.
class JobRun {
 public:
  JobRun(const RunSpec& spec, const Inherited& inherited, Caretaker& caretaker, FrontLink& link)
      : spec_(spec),
        inherited_(inherited),
        caretaker_(caretaker),
        link_(link),
        queue_(spec.tasks.tasks.size(), {spec.restarts, spec.restart_on, spec.fail_fast}),
        sharing_(caretaker.pool(), sharing_options(spec)) {}

  struct Grant {
    int64_t job = 0;
    std::vector<int> claims;       ///< on the devices (pool/claim.h); the job's processes inherit them
    double limit_at_s = kNever_s;  ///< its time limit, restarts included; on the steady clock
  };
  /// The scheduler has granted devices to the job, which are in the pool. Before the first run, and again before the
  /// next one when the job was queued again.
  void begin(Grant grant) { grant_ = std::move(grant); }

  /// Runs the command to its end. `restarts`: how often it was started before.
  Outcome run_once(int restarts);
  /// Runs those tasks that have not ended yet.
  Outcome run_tasks();
  /// Stops the sharing daemons that no job uses any more.
  void end_sharing() { sharing_.end(); }
  /// Null before the first run.
  JobOutput* output() { return output_ ? &*output_ : nullptr; }
  void close_output() { output_.reset(); }

 private:
  JobMonitor::Job monitored(bool restart);
  Result<void> open_output(size_t lanes);
  Result<confine::Confinement> confine();
  Result<confine::Confinement> confined_by_pool(const pool::PoolState& state) const;
  Result<Outcome> try_tasks();
  /// The job's devices; also reports them to the front.
  Result<std::vector<std::string>> held_devices();
  void take_cores(const pool::PoolState& state);
  Result<std::vector<process::ProcessSpec>> plan(const std::vector<std::string>& devices, int restarts);
  process::ProcessSpec process(confine::Visibility environment, const std::vector<std::string>& devices) const;

  const RunSpec& spec_;
  const Inherited& inherited_;
  Caretaker& caretaker_;
  FrontLink& link_;
  TaskQueue queue_;  ///< continues where it was when the job is queued again
  share::JobSharing sharing_;
  RunBoard board_;
  std::optional<JobOutput> output_;
  Grant grant_;
  std::string devices_text_;     ///< for people
  std::vector<int> cores_;       ///< of the host, for this job alone
  std::vector<int> free_cores_;  ///< without cores of its own: those that it uses, near its devices
  bool spares_cores_ = false;    ///< they are not all that this process may use
};

}  // namespace remuda::run
