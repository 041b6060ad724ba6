// Crew: the processes of a running job: its members, which were started for it, and all that descends from them.
#pragma once

#include <optional>
#include <vector>

#include "process/process_id.h"
#include "process/spawn.h"

namespace remuda::run {

/// Belongs to a process that is a subreaper and has no children but the crew's, and daemons (run/orphans.h): then no
/// other child left means that no process of the job is left. One thread.
class Crew {
 public:
  /// Starts one more member.
  tl::expected<void, process::StartFailure> add(const process::ProcessSpec& process);

  /// Collects those that have ended. To be called after each SIGCHLD.
  void reap();
  /// No process of the job is left; known after reap().
  bool all_gone() const { return all_gone_; }

  /// As they were started.
  const std::vector<process::ProcessId>& processes() const { return processes_; }

  struct End {
    int pid = 0;
    process::ExitState state;
  };
  /// The members that have ended, in order of time; from here on they count as none.
  std::vector<End> take_ended();

  size_t running() const { return processes_.size() - ended_.size(); }
  /// How the job ended, as far as its members have: the first that ended badly says it, else the last one.
  std::optional<process::ExitState> result() const;

  /// Sends it to the members, whatever process group they have made for themselves, and to all that is in the group
  /// they were started in, as a terminal would.
  void signal(int number) const;
  /// Sends it to every process of the job, those in groups of their own too.
  void signal_all(int number) const;
  /// SIGKILL for all descendants; who is left after `patience_s`, which only the kernel can help.
  std::vector<process::ProcessId> kill(double patience_s);

 private:
  bool collect();

  std::vector<process::ProcessId> processes_;
  std::vector<End> ended_;
  int group_ = 0;
  bool has_children_ = false, all_gone_ = false;
};

}  // namespace remuda::run
