#include "run/job_processes.h"

#include <algorithm>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "run/orphans.h"

namespace remuda::run {

tl::expected<void, process::StartFailure> JobProcesses::add(const process::ProcessSpec& process) {
  const auto pid = spawn(process);
  if (!pid) return tl::unexpected(pid.error());
  process::ProcessId id = process::own_process_id();
  id.start_ticks = 0;
  id.pid = *pid;
  processes_.push_back(process::process_id(*pid).value_or(id));  // it may have ended already
  if (group_ == 0) group_ = process.group > 0 && ::kill(-process.group, 0) == 0 ? process.group : *pid;
  all_gone_ = false;
  return {};
}

/// False when there was nothing to collect.
bool JobProcesses::collect() {
  for (bool any = false;; any = true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    has_children_ = pid >= 0;
    if (pid <= 0) return any;
    if (std::ranges::find(processes_, pid, &process::ProcessId::pid) != processes_.end())
      ended_.push_back({pid, WIFSIGNALED(status) ? process::ExitState{0, WTERMSIG(status)}
                                                 : process::ExitState{WEXITSTATUS(status), 0}});
  }
}

/// A list of processes is not read in one instant: one that ends meanwhile may leave a child that is not on the list.
/// But then there is an ended process to collect, and the list is read again.
void JobProcesses::reap() {
  all_gone_ = false;
  collect();
  while (!all_gone_ && has_children_ && running() == 0 && process::descendants(::getpid()).empty())
    all_gone_ = !collect();
  if (!has_children_) all_gone_ = true;
}

std::optional<process::ExitState> JobProcesses::result() const {
  const auto bad = std::ranges::find_if(ended_, [](const End& end) { return !end.state.ok(); });
  if (bad != ended_.end()) return bad->state;
  return ended_.empty() ? std::nullopt : std::optional(ended_.back().state);
}

std::vector<JobProcesses::End> JobProcesses::take_ended() {
  for (const End& end : ended_)
    std::erase_if(processes_, [&](const process::ProcessId& one) { return one.pid == end.pid; });
  return std::exchange(ended_, {});
}

void JobProcesses::signal(int number) const {
  for (const process::ProcessId& process : process::descendants(::getpid()))
    if (::getpgid(process.pid) == group_ || std::ranges::find(processes_, process) != processes_.end())
      send_signal(process, number);
}

void JobProcesses::signal_all(int number) const {
  for (const process::ProcessId& process : process::descendants(::getpid())) send_signal(process, number);
}

std::vector<process::ProcessId> JobProcesses::kill(double patience_s) {
  return process::kill_all([] { return process::descendants(::getpid()); }, patience_s, [this] { reap(); });
}

}  // namespace remuda::run
