// JobProcesses: the processes of a running job: its members, which were started for it, and all their descendants.
#pragma once

#include <optional>
#include <vector>

#include "process/process_id.h"
#include "process/spawn.h"

namespace remuda::run {

/// Belongs to a process that is a subreaper and has no children except the processes's processes and daemons
/// (run/orphans.h). So when no child except daemons is left, no process of the job is left. One thread.
class JobProcesses {
 public:
  /// Starts one more member.
  tl::expected<void, process::StartFailure> add(const process::ProcessSpec& process);

  /// Reaps the processes that have ended. To be called after each SIGCHLD.
  void reap();
  /// No process of the job is left; known after reap().
  bool all_gone() const { return all_gone_; }

  /// As they were started.
  const std::vector<process::ProcessId>& processes() const { return processes_; }

  struct End {
    int pid = 0;
    process::ExitState state;
  };
  /// The members that have ended, in order of time; from this call on they no longer count as running.
  std::vector<End> take_ended();

  size_t running() const { return processes_.size() - ended_.size(); }
  /// How the job ended, as far as its members have ended: as the first member that failed, else as the last one.
  std::optional<process::ExitState> result() const;

  /// Sends the signal to the members, whatever process group they have made for themselves, and to all processes in the
  /// group they were started in, as a terminal would.
  void signal(int number) const;
  /// Sends the signal to every process of the job, also to those in groups of their own.
  void signal_all(int number) const;
  /// Sends SIGKILL to all descendants. Returns those left after `patience_s`: processes that the kernel has not ended
  /// yet.
  std::vector<process::ProcessId> kill(double patience_s);

 private:
  bool collect();

  std::vector<process::ProcessId> processes_;
  std::vector<End> ended_;
  int group_ = 0;
  bool has_children_ = false, all_gone_ = false;
};

}  // namespace remuda::run
