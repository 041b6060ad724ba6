// StepTimesFile: writes the step times of a run (balance/step_times.h) to a file, a line after each step.
#pragma once

#include <string>
#include <vector>

#include "balance/step_times.h"
#include "job/train_job.h"

namespace remuda::train {

/// A write that fails ends them and not the run: it is reported on stderr, once.
class StepTimesFile {
 public:
  /// Writes to `fd`, a regular file that stays open; -1 writes nothing.
  explicit StepTimesFile(int fd) : fd_(fd) {}
  bool active() const { return fd_ >= 0; }
  /// Why they ended before the run, or that their file is gone; empty: neither.
  std::string why_ended() const;
  /// `alone`: what was measured of each device before training.
  void begin(const job::TrainJob& job, const std::vector<std::vector<balance::BatchTime>>& alone);
  void add(const balance::TimedStep& step) { write(balance::step_times_line(step)); }

 private:
  void write(const std::string& line);

  int fd_;
  std::string why_ended_;
};

}  // namespace remuda::train
