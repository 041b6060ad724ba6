// JobOutput: where a job writes: to its caller's terminal, to a log, or to both.
#pragma once

#include <optional>

#include "run/run_spec.h"
#include "run/tee.h"

namespace remuda::run {

/// The job's log, to append to: the one that was asked for; else, where its output goes nowhere else, one in the pool.
/// None for the others.
Result<Fd> open_log(const RunSpec& spec, int64_t job);

/// One thread; outlives the job's processes.
class JobOutput {
 public:
  static Result<JobOutput> open(const RunSpec& spec, int64_t job);

  /// For the job, in place of its stdout and stderr; -1: as they are.
  int out() const { return tee_ ? tee_->out() : log_ ? log_.get() : -1; }
  int err() const { return tee_ ? tee_->err() : log_ ? log_.get() : -1; }

 private:
  std::optional<Tee> tee_;
  Fd log_;
};

}  // namespace remuda::run
