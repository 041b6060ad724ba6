// JobMonitor: a job from the start of its processes to the end of the last one.
//
//   asked to end (SIGTERM, time limit, cancelled, preempted, a rank that failed): the stop signal for what was started
//   and its process group; at half the grace time for every process that is left, also in other groups: not at once, as
//   that would end data loaders before the checkpoint is written; SIGKILL after the grace time
//   its machine is about to go: the checkpoint signal first, where the job has named one and handles it, and the stop
//   signal at half the grace time
//   asked again (SIGTERM), or its front has died: SIGKILL at once, and not queued again
//   other signals: forwarded
//
// When the command has ended and processes that it left behind have not, the user is shown their names; then SIGINT,
// SIGHUP and SIGQUIT, and the closing of the terminal, ask them to end, too.
#pragma once

#include <string>
#include <vector>

#include "confine/confinement.h"
#include "pool/access.h"
#include "process/terminal.h"
#include "run/front_link.h"
#include "run/idle_response.h"
#include "run/job_output.h"
#include "run/job_processes.h"
#include "run/run_board.h"
#include "run/run_spec.h"
#include "run/task_run.h"

namespace remuda::run {

struct Outcome {
  process::ExitState state;
  std::string why;                     ///< sentence about how it ended; empty where `state` says enough
  bool started = true;                 ///< otherwise `state` and `why` have the cause
  bool stopped = false;                ///< it was asked to end
  bool may_requeue = false;            ///< and may be queued again
  Reading<int64_t> memory_peak_bytes;  ///< of the host, of all its processes together
  std::string memory_trouble;          ///< what the kernel has ended for want of memory, in words; mostly empty
};

/// "reached its time limit of 60 s".
std::string time_limit_text(const RunSpec& spec);

/// One run of the job; one thread.
class JobMonitor {
 public:
  struct Job {
    int64_t id = 0;
    std::string devices;                ///< for people
    int group = 0;                      ///< process group of its front
    double limit_at_s;                  ///< its time limit, on the steady clock; infinite: none
    bool restart = false;               ///< a failed run is followed by another, so what it leaves behind is killed
    const JobOutput* output = nullptr;  ///< its log in the pool is kept within its limit; outlives the run
    RunBoard* board = nullptr;          ///< where its run says how it goes; likewise
  };
  JobMonitor(const RunSpec& spec, Job job, pool::Access& pool, FrontLink& link,
             const confine::Confinement& confinement);
  Outcome run(const std::vector<process::ProcessSpec>& processes);
  /// Runs tasks, whose processes follow each other.
  Outcome run(TaskRun& tasks);

 private:
  bool start(const std::vector<process::ProcessSpec>& processes);
  void record_processes();
  /// SIGTERM to all processes of a group may have ended the job before this process handles its own.
  void take_late_signals();
  Outcome watch();
  std::optional<process::ExitState> result() const { return tasks_ ? tasks_->result() : processes_.result(); }
  /// All that was started for it has ended.
  bool command_has_ended() const { return processes_.running() == 0 && result().has_value(); }
  void take(const ReceivedSignal& signal);
  void name_those_left() const;
  void look_at_pool();
  void evict(const pool::Job& job);
  void look_at_members();
  void look_at_clock();
  void look_at_board();
  /// `signal`: to the members now; the stop signal, the one that a user sent to a job with tasks, or 0: none.
  void stop(const std::string& why, bool may_requeue, double grace_s, int signal);
  void kill();
  void note_memory();
  void end_what_entered() const;
  void pause();

  const RunSpec& spec_;
  const Job job_;
  const process::Terminal terminal_;
  pool::Access& pool_;
  FrontLink& link_;
  const confine::Confinement& confinement_;
  TaskRun* tasks_ = nullptr;
  JobProcesses processes_;
  IdleResponse idle_;
  Outcome outcome_;
  bool front_loss_handled_ = false;  ///< the front is gone, and the job was asked to end
  bool hung_up_ = false;             ///< the terminal was closed
  double asked_to_end_at_s_ = 0;     ///< when a signal asked it to stop; on the steady clock
  /// On the steady clock; infinite: never.
  double limit_at_s_, signal_all_at_s_, kill_at_s_, note_at_s_, board_at_s_;
};

}  // namespace remuda::run
