// JobOutput: where a job writes: to its caller's stdout and stderr, to a log, or to both.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "run/run_spec.h"

namespace remuda::run {

/// The job's log, to append to: the one that was asked for; else, where its output goes nowhere else, one in the pool.
/// None for the others.
Result<Fd> open_log(const RunSpec& spec, int64_t job);

/// Outlives the job's processes. A job with one command writes into one lane, each task into a lane of its own.
///
/// Where there is something to copy, a thread reads the lanes and hands on stdout to stdout, stderr to stderr, and both
/// to the log. A reader that takes nothing stops the writers of its stream, as a pipe does, and nothing else: what is
/// left when the job ends is logged, and waits for that reader until this object goes. Where a reader is gone, the
/// others go on, and no job hears of it.
class JobOutput {
 public:
  struct Options {
    Fd log;                    ///< gets everything, too; none: no log
    bool whole_lines = false;  ///< a line without an end goes on in parts, once it is long
    bool erase = false;        ///< a line of progress may stand on the terminal: what goes there takes its place
  };
  /// Copies; a lane and more.
  static Result<JobOutput> copy(size_t lanes, Options options);
  /// What `spec` needs: nothing between the job and its caller's streams or its log where it writes to one of them
  /// only.
  static Result<JobOutput> open(const RunSpec& spec, int64_t job, size_t lanes);

  JobOutput(JobOutput&& other) noexcept = default;
  JobOutput& operator=(JobOutput&& other) noexcept;
  /// Gives up what no reader has taken. Waits for none of them.
  ~JobOutput();

  /// In place of stdout and stderr of what writes into the lane; -1: as they are.
  int out(size_t lane = 0) const { return lanes_.empty() ? log_.get() : lanes_.at(lane).out.get(); }
  int err(size_t lane = 0) const { return lanes_.empty() ? log_.get() : lanes_.at(lane).err.get(); }
  bool copies() const { return copier_.joinable(); }

  /// Cuts a log in the pool that has become too large (pool/logs.h).
  void bound_log() const;
  /// Whether there is such a log.
  bool has_pool_log() const { return static_cast<bool>(pool_log_); }

  /// The writers have ended. Waits until all is handed on, one of `wakers` is readable, or `seconds` have passed; true
  /// when all is.
  bool finish(double seconds, const std::vector<int>& wakers = {});

 private:
  struct Lane {
    Fd out, err;
  };
  JobOutput() = default;
  void give_up();

  std::vector<Lane> lanes_;
  Fd log_;           ///< where nothing is copied
  Fd pool_log_;      ///< the same file, or the one that is copied to, where it is the pool's
  Fd stop_, abort_;  ///< the thread ends, once all is handed on, when the first is closed; at once with the second
  Fd done_;          ///< at its end when the thread has ended
  std::thread copier_;
};

}  // namespace remuda::run
