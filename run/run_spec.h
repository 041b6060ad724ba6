// RunSpec: what `remuda run` was asked to do. Plain data.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "pool/job.h"
#include "run/array_spec.h"
#include "run/task_list.h"
#include "share/job_sharing.h"

namespace remuda::run {

struct RunSpec {
  pool::Job job;           ///< as to be submitted, without id and keeper
  std::string pool;        ///< the pool's folder
  std::string logs;        ///< the folder below which a log is that the job does not name (pool/logs.h)
  int64_t takes_over = 0;  ///< not 0: no new job, but this one of the pool, which is unkept
  bool live = true;   ///< the machine is this one: jobs are bound to CPUs, and others may use devices without a lease
  bool wait = true;   ///< otherwise the job ends where it cannot start at once
  bool each = false;  ///< a process for each device in place of one for all
  TaskList tasks;     ///< not empty: these, one at a time on each device, in place of the job's command
  bool fail_fast = false;    ///< a task that failed ends the others
  ArraySpec array;           ///< not empty: a job for each index
  bool log_only = false;     ///< its output goes only to its log: to one in the pool where it names none
  bool has_bar = false;      ///< the front draws a line of progress on the terminal
  bool with_parent = false;  ///< the front, and so the job, ends when the process that started it has ended
  bool isolate = false;      ///< refuse to run where devices that were not granted could be opened
  int stop_signal = SIGTERM;
  int checkpoint_signal = 0;    ///< by which it writes a checkpoint and goes on; 0: it has named none
  double grace_s = 30;          ///< between the stop signal and SIGKILL
  bool requeue = false;         ///< once stopped by SIGTERM or the time limit; a preemptible job always is
  int restarts = 0;             ///< at most so many
  std::vector<int> restart_on;  ///< only after these exit codes; empty: after each failure

  /// Whether each process sees one of the job's devices, rather than all.
  bool parts_devices() const { return each || !tasks.empty(); }
  bool can_be_queued_again() const { return requeue || job.preemptible; }
};

inline share::JobSharing::Options sharing_options(const RunSpec& spec) {
  return {.folder = spec.pool, .share = spec.job.request.share, .parted = spec.parts_devices(), .live = spec.live};
}

}  // namespace remuda::run
