#include "launch/orphans.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "base/process_stat.h"
#include "base/text.h"
#include "launch/cgroup.h"

namespace remuda {
namespace {

std::vector<int> all_processes() {
  std::vector<int> pids;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error))
    if (const auto pid = parse_number<int>(entry->path().filename().string())) pids.push_back(*pid);
  return pids;
}

void add_children(const std::multimap<int, int>& children, int parent, const std::vector<int>& except,
                  std::vector<int>& found) {
  const auto [first, last] = children.equal_range(parent);
  for (auto child = first; child != last; ++child)
    if (std::ranges::find(except, child->second) == except.end()) found.push_back(child->second);
}

/// Whether an environment, as in /proc/PID/environ, has this entry.
bool has_entry(const std::string& environment, const std::string& entry) {
  const auto entries = split(environment, '\0');
  return std::ranges::find(entries, entry) != entries.end();
}

bool is_daemon(int pid) {
  const auto environment = read_text(fmt::format("/proc/{}/environ", pid));
  if (!environment) return false;
  const auto entries = split(*environment, '\0');
  return std::ranges::any_of(entries, [start = fmt::format("{}=", kDaemonVariable)](const std::string& entry) {
    return entry.starts_with(start);
  });
}

enum class Seen { carrier, other, hidden };

Seen look_into(int pid, const std::string& pool, int64_t job) {
  const auto environment = read_text(fmt::format("/proc/{}/environ", pid));
  if (!environment) return Seen::hidden;
  const bool carries = has_entry(*environment, fmt::format("{}={}", kJobVariable, job)) &&
                       has_entry(*environment, fmt::format("{}={}", kPoolVariable, pool));
  return carries ? Seen::carrier : Seen::other;
}

bool belongs_to(int pid, int uid) {
  struct stat info{};
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &info) == 0 && static_cast<int>(info.st_uid) == uid;
}

/// A hidden process may be one of the job's: its user's, and not older than the job.
bool may_be_of(const Job& job, int pid, Seen seen) {
  if (seen == Seen::carrier) return true;
  if (seen == Seen::other || job.uid == static_cast<int>(::getuid()) || !belongs_to(pid, job.uid)) return false;
  const auto process = process_id(pid);
  return process && (job.processes.empty() || process->start_ticks >= job.processes.front().start_ticks);
}

}  // namespace

std::vector<ProcessId> descendants(int root, const std::vector<int>& except) {
  std::multimap<int, int> children;
  for (const int pid : all_processes())
    if (const auto stat = process_stat(pid)) children.emplace(stat->parent, pid);
  std::vector<int> pids;
  add_children(children, root, except, pids);
  for (size_t next = 0; next < pids.size(); ++next) add_children(children, pids[next], except, pids);
  std::vector<ProcessId> found;
  for (const int pid : pids)
    if (auto process = process_id(pid); process && !is_daemon(pid)) found.push_back(std::move(*process));
  return found;
}

std::vector<ProcessId> carriers(const std::string& pool, int64_t job) {
  std::vector<ProcessId> found;
  for (const int pid : all_processes()) {
    if (pid == ::getpid()) continue;
    auto process = process_id(pid);
    if (process && look_into(pid, pool, job) == Seen::carrier) found.push_back(std::move(*process));
  }
  return found;
}

std::vector<ProcessId> daemon_processes(const std::string& name) {
  const std::string entry = fmt::format("{}={}", kDaemonVariable, name);
  std::vector<ProcessId> found;
  for (const int pid : all_processes()) {
    const auto environment = read_text(fmt::format("/proc/{}/environ", pid));
    if (!environment || !has_entry(*environment, entry)) continue;
    if (auto process = process_id(pid)) found.push_back(std::move(*process));
  }
  return found;
}

bool has_orphans(const std::string& pool, const Job& job) {
  return std::ranges::any_of(
      all_processes(), [&](int pid) { return process_id(pid) && may_be_of(job, pid, look_into(pid, pool, job.id)); });
}

bool send_signal(const ProcessId& process, int number) {
  const Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!fd || !is_alive(process)) return false;
  return ::syscall(SYS_pidfd_send_signal, fd.get(), number, nullptr, 0) == 0;
}

std::vector<ProcessId> kill_all(const std::function<std::vector<ProcessId>()>& find, double patience_s,
                                const std::function<void()>& between) {
  constexpr double kFirstPause_s = 0.001, kLongestPause_s = 0.1;
  const double end_s = monotonic_s() + patience_s;
  double pause_s = kFirstPause_s;
  for (;;) {
    const std::vector<ProcessId> left = find();
    for (const ProcessId& process : left) send_signal(process, SIGKILL);
    between();
    if (left.empty() || monotonic_s() > end_s) return left;
    steady_clock().sleep_s(pause_s);
    pause_s = std::min(2 * pause_s, kLongestPause_s);
  }
}

std::vector<ProcessId> kill_orphans(const std::string& pool, int64_t job, double patience_s) {
  const std::vector<std::string> cgroups = find_cgroups(cgroup_name(pool, job));
  const auto find = [&] {
    std::vector<ProcessId> found = carriers(pool, job);
    for (const std::string& cgroup : cgroups) {
      kill_cgroup(cgroup);
      std::ranges::copy(cgroup_members(cgroup), std::back_inserter(found));
    }
    return found;
  };
  return kill_all(find, patience_s);
}

bool remove_cgroups(const std::string& pool, int64_t job) {
  bool all_gone = true;
  for (const std::string& cgroup : find_cgroups(cgroup_name(pool, job))) all_gone = remove_cgroup(cgroup) && all_gone;
  return all_gone;
}

}  // namespace remuda
