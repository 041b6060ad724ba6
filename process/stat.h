// ProcessStat: the fields of a process's /proc/PID/stat; see proc(5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace remuda::process {

struct ProcessStat {
  std::string name;         ///< any bytes, 15 at the most
  char state = '?';         ///< R, S, D, Z, ...
  int parent = 0;           ///< 0: none that can be seen
  int64_t cpu_ticks = 0;    ///< of all its threads, in user mode and in the kernel
  unsigned flags = 0;       ///< PF_* of linux/sched.h
  int64_t threads = 0;      ///< a process whose first thread has ended looks like a zombie while others run on
  int64_t start_ticks = 0;  ///< clock ticks after boot
  /// Where the program's code ends; 1 where this user may not know; 0: there is none now. It is a zombie, a thread of
  /// the kernel, or begins another program (execve), and has no environment until this is not 0.
  uint64_t code_end = 0;
};

/// It is no zombie.
bool is_running(const ProcessStat& stat);

/// Nothing where there is no such process, or /proc does not show it. The process's name may contain any characters,
/// and cannot shift the fields.
std::optional<ProcessStat> process_stat(int pid);

}  // namespace remuda::process
