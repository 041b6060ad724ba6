// ProcessId: identifies one process for ever. A pid alone does not: it is reused, after a reboot in any case, and
// containers have pids of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace remuda::process {

struct ProcessId {
  int pid = 0;
  int64_t start_ticks = 0;    ///< field 22 of /proc/PID/stat: clock ticks after boot
  std::string boot_id;        ///< /proc/sys/kernel/random/boot_id
  int64_t pid_namespace = 0;  ///< in which the pid counts: inode of /proc/PID/ns/pid; 0: not known, taken for one's own

  static constexpr const char* kName = "process_id";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("pid", self.pid, "process id");
    visit("start_ticks", self.start_ticks, "when it started, in clock ticks after boot");
    visit("boot_id", self.boot_id, "the kernel's id of that boot");
    visit("pid_namespace", self.pid_namespace, "the kernel's number of the namespace of process ids");
  }
  bool operator==(const ProcessId&) const = default;
};

/// Nothing when no such process runs, or it is a zombie.
std::optional<ProcessId> process_id(int pid);
ProcessId own_process_id();
/// Whether it is in this process's pid namespace. For processes of another namespace the number says nothing (see
/// pool/lifeline.h).
bool is_visible(const ProcessId& process);
/// Whether it is visible, and neither gone, nor a zombie, nor another process with the same number. Where /proc hides
/// the processes of others (hidepid), a process of theirs counts as alive while its number is in use: better a device
/// held too long than twice.
bool is_alive(const ProcessId& process);

}  // namespace remuda::process
