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

namespace remuda::process {
namespace {

void add_children(const std::multimap<int, int>& children, int parent, const std::vector<int>& except,
                  std::vector<int>& found) {
  const auto [first, last] = children.equal_range(parent);
  for (auto child = first; child != last; ++child)
    if (std::ranges::find(except, child->second) == except.end()) found.push_back(child->second);
}

bool is_daemon(int pid) {
  const auto entries = environ_of(pid);
  const std::string start = fmt::format("{}=", env::daemon.name);
  return entries && std::ranges::any_of(*entries, [&](const std::string& entry) { return entry.starts_with(start); });
}

}  // namespace

std::vector<int> all_processes() {
  std::vector<int> pids;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error))
    if (const auto pid = parse_number<int>(entry->path().filename().string())) pids.push_back(*pid);
  return pids;
}

std::vector<ProcessId> descendants(int root, const std::vector<int>& except) {
  std::multimap<int, int> children;
  for (const int pid : all_processes())
    if (const auto stat = process_stat(pid)) children.emplace(stat->parent, pid);
  std::vector<int> pids, left_out = guarded_children();
  left_out.insert(left_out.end(), except.begin(), except.end());
  add_children(children, root, left_out, pids);
  for (size_t next = 0; next < pids.size(); ++next) add_children(children, pids[next], left_out, pids);
  std::vector<ProcessId> found;
  for (const int pid : pids)
    if (auto process = process_id(pid); process && !is_daemon(pid)) found.push_back(std::move(*process));
  return found;
}

std::optional<std::vector<std::string>> environ_of(int pid) {
  const auto environment = read_text(fmt::format("/proc/{}/environ", pid));
  if (!environment) return std::nullopt;
  return split(*environment, '\0');
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
