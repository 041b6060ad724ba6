#include "pool/process_id.h"

#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

namespace remuda {
namespace {

/// /proc/PID/stat. The command, its second field, may hold anything, so counting starts behind its parenthesis.
struct Stat {
  char state = '?';
  int64_t threads = 0;
  int64_t start_ticks = 0;

  /// A process whose first thread has ended looks like a zombie while others run on.
  bool lives() const { return (state != 'Z' && state != 'X' && state != 'x') || (state == 'Z' && threads > 1); }
};

std::optional<Stat> read_stat(int pid) {
  constexpr size_t kLongest = 8192;
  constexpr size_t kState = 0, kThreads = 17, kStart = 19;  // fields 3, 20 and 22
  if (pid <= 0) return std::nullopt;
  const auto text = read_text(fmt::format("/proc/{}/stat", pid), kLongest);
  if (!text) return std::nullopt;
  const size_t end = text->rfind(") ");
  if (end == std::string::npos) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(end + 2), ' ');
  if (fields.size() <= kStart || fields[kState].size() != 1) return std::nullopt;
  const auto threads = parse_number<int64_t>(fields[kThreads]), start = parse_number<int64_t>(fields[kStart]);
  if (!threads || !start) return std::nullopt;
  return Stat{fields[kState][0], *threads, *start};
}

const std::string& boot_id() {
  static const std::string id = read_text("/proc/sys/kernel/random/boot_id", 4096).value_or("").substr(0, 36);
  return id;
}

int64_t pid_namespace() {
  static const int64_t number = [] {
    struct stat info{};
    return ::stat("/proc/self/ns/pid", &info) == 0 ? static_cast<int64_t>(info.st_ino) : 0;
  }();
  return number;
}

bool is_hidden(int pid) { return pid > 0 && ::kill(pid, 0) != 0 && errno == EPERM; }

}  // namespace

std::optional<ProcessId> process_id(int pid) {
  const auto stat = read_stat(pid);
  if (!stat || !stat->lives()) return std::nullopt;
  return ProcessId{pid, stat->start_ticks, boot_id(), pid_namespace()};
}

ProcessId own_process_id() {
  return process_id(::getpid()).value_or(ProcessId{::getpid(), 0, boot_id(), pid_namespace()});
}

bool is_visible(const ProcessId& process) {
  return process.pid_namespace == 0 || pid_namespace() == 0 || process.pid_namespace == pid_namespace();
}

bool is_alive(const ProcessId& process) {
  if (process.boot_id != boot_id() || !is_visible(process)) return false;
  const auto stat = read_stat(process.pid);
  return stat ? stat->lives() && stat->start_ticks == process.start_ticks : is_hidden(process.pid);
}

}  // namespace remuda
