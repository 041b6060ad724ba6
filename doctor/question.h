// Question: work done in a child process, so that this process is not affected when it hangs, crashes or is slow.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "process/guarded_child.h"

namespace remuda::doctor {

/// The child and all it started are killed with this object.
class Question {
 public:
  /// Starts a guarded child that runs `work` and sends back its text. It may take `limit_s` from now, by `clock`, which
  /// must outlive it. `who` is named in errors: "python3". To be called while this process has one thread: the child
  /// runs `work` in a copy of it.
  static Result<Question> ask(std::string who, const std::function<std::string()>& work, double limit_s, Clock& clock);

  /// Waits for the answer, to be called once. "python3 did not answer within 2.5 s" when time is up, "python3 ended
  /// without an answer" when it crashed.
  Result<std::string> answer();
  pid_t pid() const { return child_.pid(); }

 private:
  Question(std::string who, process::GuardedChild child, double limit_s, Clock& clock);
  std::string who_;
  process::GuardedChild child_;
  double limit_s_, end_s_;
  Clock* clock_;
};

/// What a program prints, found on PATH and run without input; what it writes to stderr is dropped. Waits for its end
/// without a limit: call it within a Question.
Result<std::string> output_of(const std::vector<std::string>& argv);

}  // namespace remuda::doctor
