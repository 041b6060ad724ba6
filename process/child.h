// ChildProcess: one program, from its start to its end. It never outlives the process that owns it, however that ends.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>

#include "base/file.h"
#include "base/result.h"
#include "process/spawn.h"

namespace remuda::process {

/// It has a process group of its own, so that a terminal's Ctrl-C reaches only the owner. One thread at a time.
class ChildProcess {
 public:
  /// Returns once the program runs; an error names the program and the cause. It reads `input` on stdin, and its stdout
  /// and stderr are output(). The rest is as in process/spawn.h.
  static Result<ChildProcess> spawn(ProcessSpec spec, const std::string& input = "");

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// Kills the whole group (SIGKILL) if it still runs, and reaps it.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  /// Readable, in the sense of poll, once the process has ended.
  int pidfd() const { return pidfd_.get(); }
  /// What the process writes on stdout and stderr, one stream; does not block.
  int output() const { return output_.get(); }

  /// Sends a signal to the process group; does nothing if the process has been reaped.
  void signal(int number);
  /// How it ended; nothing while it runs.
  std::optional<ExitState> exit_state();

 private:
  ChildProcess(pid_t pid, Fd pidfd, Fd output);
  pid_t pid_;
  Fd pidfd_, output_;
  std::optional<ExitState> exit_;
};

}  // namespace remuda::process
