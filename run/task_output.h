// TaskOutput: what tasks that run at once write, mixed line by line, to where their caller's output goes and to a log.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace remuda::run {

/// Each task writes into a lane of its own. A thread hands on whole lines, stdout to stdout and stderr to stderr; a
/// line without an end goes on in parts. Where the reader of a stream is gone, the others go on: no task hears of it.
class TaskOutput {
 public:
  struct Options {
    Fd log;              ///< gets everything, too; none: no log
    bool erase = false;  ///< a line of progress may stand on the terminal: lines that go there take its place
  };
  static Result<TaskOutput> open(size_t lanes, Options options);
  TaskOutput(TaskOutput&& other) noexcept = default;
  TaskOutput& operator=(TaskOutput&&) = delete;
  /// Hands on what is there still, and ends.
  ~TaskOutput();

  /// For the task of a lane, in place of its stdout and stderr.
  int out(size_t lane) const { return lanes_.at(lane).out.get(); }
  int err(size_t lane) const { return lanes_.at(lane).err.get(); }

 private:
  struct Lane {
    Fd out, err;
  };
  TaskOutput() = default;
  std::vector<Lane> lanes_;
  Fd stop_;  ///< the thread ends when this is closed
  std::thread mixer_;
};

}  // namespace remuda::run
