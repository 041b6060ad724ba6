#include "process/process_id.h"

#include <cerrno>
#include <csignal>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "process/stat.h"

namespace remuda::process {
namespace {

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
  const auto stat = process_stat(pid);
  if (!stat || !is_running(*stat)) return std::nullopt;
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
  const auto stat = process_stat(process.pid);
  return stat ? is_running(*stat) && stat->start_ticks == process.start_ticks : is_hidden(process.pid);
}

}  // namespace remuda::process
