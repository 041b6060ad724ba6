// Watch: a job from the start of its processes to the end of the last one.
//
//   asked to end (SIGTERM, time limit, cancelled, preempted, a rank that failed): the stop signal, SIGKILL after the
//   grace time
//   asked again (SIGTERM), or its front has died: SIGKILL at once, and not queued again
//   other signals: handed on
#pragma once

#include <string>
#include <vector>

#include "confine/confinement.h"
#include "pool/pool.h"
#include "run/crew.h"
#include "run/front_link.h"
#include "run/run_spec.h"
#include "run/task_run.h"

namespace remuda::run {

struct Outcome {
  process::ExitState state;
  std::string why;           ///< sentence about how it ended; empty where the state says all
  bool started = true;       ///< otherwise `state` and `why` tell what stood in the way
  bool stopped = false;      ///< somebody wanted it to end
  bool may_requeue = false;  ///< and not for good
};

/// One run of it; one thread.
class Watch {
 public:
  /// `restart`: whether a failed run will be followed by another, so that what it leaves behind is killed.
  Watch(const RunSpec& spec, int64_t job, pool::Pool& pool, FrontLink& link, const confine::Confinement& confinement,
        bool restart);
  Outcome run(const std::vector<process::ProcessSpec>& processes);
  /// With members that follow each other.
  Outcome run(TaskRun& tasks);

 private:
  bool start(const std::vector<process::ProcessSpec>& processes);
  void record_processes();
  /// SIGTERM to all processes of a group may have ended the job before it is heard of here.
  void hear_what_ended_it();
  Outcome watch();
  std::optional<process::ExitState> result() const { return tasks_ ? tasks_->result() : crew_.result(); }
  void take(const SignalNews& news);
  void look_at_pool();
  void look_at_members();
  void look_at_clock();
  void stop(const std::string& why, bool may_requeue, double grace_s);
  void kill();
  void pause();

  const RunSpec& spec_;
  const int64_t job_;
  pool::Pool& pool_;
  FrontLink& link_;
  const confine::Confinement& confinement_;
  const bool restart_;
  TaskRun* tasks_ = nullptr;
  Crew crew_;
  Outcome outcome_;
  bool abandoned_ = false;                     ///< the front is gone, and that was seen to
  double told_at_s_ = 0;                       ///< to stop, by SIGTERM; on the steady clock, as
  double limit_at_s_, kill_at_s_, note_at_s_;  ///< on the steady clock; infinite: never
};

}  // namespace remuda::run
