#include "cli/jobs/calling_shell.h"

#include <unistd.h>

#include "process/stat.h"

namespace remuda::cli {
namespace {

bool was_only_forked(const process::ProcessStat& stat) {
  constexpr unsigned kForkedNoExec = 0x40;  // PF_FORKNOEXEC, linux/sched.h
  return (stat.flags & kForkedNoExec) != 0;
}

}  // namespace

Result<process::ProcessId> calling_shell() {
  int pid = ::getppid();
  for (auto stat = process::process_stat(pid); stat && was_only_forked(*stat) && stat->parent > 1;
       stat = process::process_stat(pid))
    pid = stat->parent;
  if (const auto shell = process::process_id(pid); shell && pid > 0) return *shell;
  return usage_error("the shell that this ran in has ended or cannot be seen; name one with --for PID");
}

}  // namespace remuda::cli
