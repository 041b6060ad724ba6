// JobOutput: where a job writes: to its caller's stdout and stderr, to a log, or to both.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "run/run_spec.h"

namespace remuda::run {

/// The job's log, opened to append: the one that the user asked for; else, where the output goes nowhere else, one in
/// the pool. No descriptor for the other jobs.
Result<Fd> open_log(const RunSpec& spec, int64_t job);

/// Outlives the job's processes. A job with one command writes into one lane, each task into a lane of its own.
///
/// Where there is something to copy, a thread reads the lanes and copies stdout to stdout, stderr to stderr, and both
/// to the log. A reader that stops reading blocks only the writers of its stream, as a pipe does: what is left when the
/// job ends is logged, and is kept for that reader until this object is destroyed. Where a reader is gone, the other
/// streams go on, and the job's writes do not fail.
class JobOutput {
 public:
  struct Options {
    Fd log;                    ///< gets everything, too; none: no log
    bool whole_lines = false;  ///< a line without a newline is passed on in parts, once it is long
    bool erase = false;        ///< a line of progress may be on the terminal: output that goes there overwrites it
  };
  /// An output that copies; `lanes` is at least 1.
  static Result<JobOutput> copy(size_t lanes, Options options);
  /// The output that `spec` needs. Where the job writes only to its caller's streams or only to its log, it writes
  /// there directly, and nothing is copied.
  static Result<JobOutput> open(const RunSpec& spec, int64_t job, size_t lanes);

  JobOutput(JobOutput&& other) noexcept = default;
  JobOutput& operator=(JobOutput&& other) noexcept;
  /// Discards what readers have not taken. Waits for none of them.
  ~JobOutput();

  /// The stdout and stderr of the processes that write into the lane; -1: the caller's.
  int out(size_t lane = 0) const { return lanes_.empty() ? log_.get() : lanes_.at(lane).out.get(); }
  int err(size_t lane = 0) const { return lanes_.empty() ? log_.get() : lanes_.at(lane).err.get(); }
  bool copies() const { return copier_.joinable(); }

  /// Shortens a log in the pool that has become too large (pool/logs.h).
  void bound_log() const;
  /// Whether there is such a log.
  bool has_pool_log() const { return static_cast<bool>(pool_log_); }

  /// To be called when the writers have ended. Waits until all output is copied, one of `wakers` is readable, or
  /// `seconds` have passed; true when all is copied.
  bool finish(double seconds, const std::vector<int>& wakers = {});
  /// After finish() has returned true: which output could not be written, and why; empty where all was.
  std::string loss() const { return loss_ ? *loss_ : ""; }

 private:
  struct Lane {
    Fd out, err;
  };
  JobOutput() = default;
  void give_up();

  std::vector<Lane> lanes_;
  Fd log_;           ///< the job's log, where nothing is copied
  Fd pool_log_;      ///< that file, or the one that is copied to, where it is a log in the pool
  Fd stop_, abort_;  ///< the thread ends once all is copied when the first is closed; at once when the second is
  Fd done_;          ///< reads end of file once the thread has ended
  std::thread copier_;
  std::shared_ptr<std::string> loss_;  ///< the thread's until it has ended
};

}  // namespace remuda::run
