// Tests only: real programs, run as users run them: what they wrote, how they ended, whom they left behind.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "launch/process.h"

namespace remuda {

/// A folder of its own in the system's place for temporary files, gone with all it holds when this object goes.
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const;
  /// Everything in it, sorted.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

struct Finished {
  ExitState exit;
  bool timed_out = false;
  std::string out, err;
};

/// For messages of failed tests: how it ended and what it wrote.
std::ostream& operator<<(std::ostream& stream, const Finished& finished);

/// A program under way. It does not outlive this object.
class RunningProgram {
 public:
  /// argv[0] is searched in PATH. Throws when it cannot be started.
  explicit RunningProgram(const std::vector<std::string>& argv, const Environment& environment = {});

  pid_t pid() const { return process_.pid(); }
  void signal(int number) { process_.signal(number); }
  std::string out() const { return output_.read("out"); }
  std::string err() const { return output_.read("err"); }
  /// Waits for its end, `patience_s` at the most.
  Finished finish(double patience_s = 60);

 private:
  ScratchFolder output_;
  ChildProcess process_;
};

Finished run(const std::vector<std::string>& argv, const Environment& environment = {});

/// Polls until `condition` holds; false when it does not within `patience_s`.
bool eventually(const std::function<bool()>& condition, double patience_s);

/// Child processes, in the order in which they were started.
std::vector<pid_t> children_of(pid_t parent);
/// Neither gone nor a zombie.
bool is_alive(pid_t pid);
bool all_gone(const std::vector<pid_t>& pids);

}  // namespace remuda
