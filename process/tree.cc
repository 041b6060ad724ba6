#include "process/tree.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "process/guarded_child.h"
#include "process/stat.h"
#include "process/status.h"

namespace remuda::process {
namespace {

void add_children(const std::multimap<int, int>& children, int parent, const std::vector<int>& except,
                  std::vector<int>& found) {
  const auto [first, last] = children.equal_range(parent);
  for (auto child = first; child != last; ++child)
    if (std::ranges::find(except, child->second) == except.end()) found.push_back(child->second);
}

std::vector<int> numbers_in(const std::string& folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const auto number = parse_number<int>(entry->path().filename().string())) numbers.push_back(*number);
  return numbers;
}

/// The environment as the kernel shows it now, by whichever thread still has it: a process whose first thread has ended
/// shows none of its own.
Result<std::string> read_environ(int pid) {
  auto text = read_text(fmt::format("/proc/{}/environ", pid));
  if (text && !text->empty()) return text;
  for (const int thread : numbers_in(fmt::format("/proc/{}/task", pid)))
    if (auto of_thread = read_text(fmt::format("/proc/{}/task/{}/environ", pid, thread)))
      if (!of_thread->empty()) return of_thread;
  return text;
}

std::vector<ProcessId> tree_below(int root, const std::vector<int>& except) {
  std::multimap<int, int> children;
  for (const int pid : all_processes())
    if (const auto stat = process_stat(pid)) children.emplace(stat->parent, pid);
  std::vector<int> pids;
  add_children(children, root, except, pids);
  for (size_t next = 0; next < pids.size(); ++next) add_children(children, pids[next], except, pids);
  std::vector<ProcessId> found;
  for (const int pid : pids)
    if (auto process = process_id(pid)) found.push_back(std::move(*process));
  return found;
}

/// Of podman: it keeps the user's namespace for his next containers, and systemd has put it into a unit of its own.
bool is_pause_process(int pid) {
  const auto cgroups = read_text(fmt::format("/proc/{}/cgroup", pid));
  return cgroups && cgroups->find("/podman-pause-") != std::string::npos;
}

}  // namespace

bool is_daemon(int pid) {
  if (is_pause_process(pid)) return true;
  const auto entries = environ_of(pid);
  const std::string start = fmt::format("{}=", env::daemon.name);
  return entries && std::ranges::any_of(*entries, [&](const std::string& entry) { return entry.starts_with(start); });
}

std::vector<int> all_processes() { return numbers_in("/proc"); }

std::vector<ProcessId> all_descendants(int root) { return tree_below(root, {}); }

std::vector<ProcessId> family_of(const ProcessId& process, int uid) {
  std::vector<ProcessId> family{process};
  for (const ProcessId& one : all_descendants(process.pid))
    if (sole_user_of(one.pid) == uid) family.push_back(one);
  return family;
}

std::vector<ProcessId> descendants(int root, const std::vector<int>& except) {
  std::vector<int> left_out = guarded_children();
  left_out.insert(left_out.end(), except.begin(), except.end());
  std::vector<ProcessId> found = tree_below(root, left_out);
  std::erase_if(found, [](const ProcessId& process) { return is_daemon(process.pid); });
  return found;
}

std::optional<std::vector<std::string>> environ_of(int pid) {
  constexpr double kPatience_s = 1, kLongest_s = 0.005;  // execve takes some 0.1 ms, more where the disk is slow
  constexpr unsigned kKernelThread = 0x00200000;         // PF_KTHREAD of linux/sched.h
  const double end_s = monotonic_s() + kPatience_s;
  double pause_s = 0.0003;
  for (int empty = 0; monotonic_s() < end_s;) {
    const auto environment = read_environ(pid);
    if (!environment) return std::nullopt;
    if (!environment->empty()) return split(*environment, '\0');
    const auto stat = process_stat(pid);
    if (!process_id(pid) || !stat || (stat->flags & kKernelThread) != 0) return std::vector<std::string>{};
    // Between two looks a process may begin a program and end doing so; not between each two of three.
    if (stat->code_end != 0 && ++empty == 3) return std::vector<std::string>{};
    steady_clock().sleep_s(pause_s);
    pause_s = std::min(kLongest_s, 1.6 * pause_s);  // never in step with a process that begins one after another
  }
  return std::nullopt;
}

std::vector<ProcessId> processes_with(const std::function<bool(const std::vector<std::string>&)>& matches) {
  std::vector<ProcessId> found;
  for (const int pid : all_processes()) {
    if (pid == ::getpid()) continue;
    const auto carried = environ_of(pid);
    if (!carried || !matches(*carried)) continue;
    if (auto process = process_id(pid)) found.push_back(std::move(*process));
  }
  return found;
}

std::vector<ProcessId> processes_with(const std::vector<std::string>& entries) {
  return processes_with([&](const std::vector<std::string>& carried) {
    return std::ranges::all_of(
        entries, [&](const std::string& entry) { return std::ranges::find(carried, entry) != carried.end(); });
  });
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

}  // namespace remuda::process
