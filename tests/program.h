// Tests only: real programs, run as users run them: their output, how they ended, and the processes they left.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/testing/scratch_folder.h"
#include "process/child.h"

namespace remuda::tests {

/// How long a test waits for something that must happen: long, so that a busy machine does not fail it.
inline constexpr double kPatience_s = 30;

struct Finished {
  process::ExitState exit;
  bool timed_out = false;
  std::string out, err;
};

/// For messages of failed tests: how it ended and what it wrote.
std::ostream& operator<<(std::ostream& stream, const Finished& finished);

/// A running program. It does not outlive this object.
class RunningProgram {
 public:
  /// argv[0] is searched in PATH. Throws when it cannot be started.
  explicit RunningProgram(const std::vector<std::string>& argv, const process::Environment& environment = {});

  pid_t pid() const { return process_.pid(); }
  void signal(int number) { process_.signal(number); }
  std::string out() const { return output_.read("out"); }
  std::string err() const { return output_.read("err"); }
  /// Waits for its end, `patience_s` at the most.
  Finished finish(double patience_s = 60);

 private:
  ScratchFolder output_;
  process::ChildProcess process_;
};

Finished run(const std::vector<std::string>& argv, const process::Environment& environment = {});

/// Polls until `condition` holds; false when it does not within `patience_s`.
bool eventually(const std::function<bool()>& condition, double patience_s);

/// Child processes, in the order in which they were started.
std::vector<pid_t> children_of(pid_t parent);
/// Neither gone nor a zombie.
bool is_running(pid_t pid);
bool all_gone(const std::vector<pid_t>& pids);

}  // namespace remuda::tests
