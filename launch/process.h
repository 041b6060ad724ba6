// ChildProcess: one child program, from its start to its end. It never outlives its owner, however the owner ends.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace remuda {

/// Names and values of environment variables.
using Environment = std::vector<std::pair<std::string, std::string>>;

struct ProcessSpec {
  std::vector<std::string> argv;  ///< argv[0] is the program's path
  Environment environment;        ///< added to the caller's, or in place of it where the name is the same
  std::string input;              ///< what the child reads on its stdin
  std::vector<int> inherited;     ///< descriptors the child keeps, under their numbers
  std::vector<int> cores;         ///< logical CPUs it may run on; empty: the caller's
};

/// How a process ended: with a status, or by a signal.
struct ExitState {
  int status = 0;
  int signal = 0;
  bool ok() const { return status == 0 && signal == 0; }
};

/// "exited with status 3", "killed by signal 9 (Killed)".
std::string to_string(const ExitState& state);

/// A process group of its own, so that a terminal's Ctrl-C reaches the owner alone. One thread at a time.
class ChildProcess {
 public:
  /// Returns once the program runs; an error says which program and what stood in its way. The kernel kills the child
  /// when the calling thread ends, kill -9 included: spawn from a thread that lasts as long as the child shall.
  static Result<ChildProcess> spawn(const ProcessSpec& spec);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// Kills the whole group (SIGKILL) if it still runs, and reaps it.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  /// Readable, in the sense of poll, once the process has ended.
  int pidfd() const { return pidfd_.get(); }
  /// What the process writes on stdout and stderr, one stream; does not block.
  int output() const { return output_.get(); }

  /// Sends a signal to the process group; nothing if the process has been reaped.
  void signal(int number);
  /// How it ended; nothing while it runs.
  std::optional<ExitState> exit_state();

 private:
  ChildProcess(pid_t pid, Fd pidfd, Fd output);
  pid_t pid_;
  Fd pidfd_, output_;
  std::optional<ExitState> exit_;
};

}  // namespace remuda
