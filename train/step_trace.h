// StepTrace: writes the trace of a run (balance/trace.h) to a file, a line after each step.
#pragma once

#include <string>

#include "balance/trace.h"

namespace remuda::train {

/// A write that fails ends the trace and not the run: it is reported on stderr, once.
class StepTrace {
 public:
  /// Writes to `fd`, a regular file that stays open; -1 writes nothing.
  explicit StepTrace(int fd) : fd_(fd) {}
  bool active() const { return fd_ >= 0; }
  void begin(const balance::TraceHead& head) { write(balance::trace_line(head)); }
  void add(const balance::TraceStep& step) { write(balance::trace_line(step)); }

 private:
  void write(const std::string& line);

  int fd_;
};

}  // namespace remuda::train
