// RunReporter: reports how a run goes to the keeper of the job that it is in (run/run_board.h): so that others see how
// far it has come and how old its last checkpoint is, what its devices wait for is counted, and who waits for another
// rank is not taken for idle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "job/train_job.h"
#include "pool/run_notice.h"

namespace remuda::cli {

/// One thread.
class RunReporter {
 public:
  static constexpr double kEvery_s = 5;

  /// `fd` is that of the board; -1: nobody listens. `devices` are the ids of those of the ranks that run here, the
  /// first of which has the number `first`.
  RunReporter(int fd, std::vector<std::string> devices, int first, job::CheckpointSpec checkpoint)
      : fd_(fd), devices_(std::move(devices)), first_(static_cast<size_t>(first)), checkpoint_(std::move(checkpoint)) {}

  /// An event of the run; `now_s` is a steady time.
  void take(const Json& event, double now_s);

 private:
  /// Where a checkpoint was written, or where its work began.
  struct Mark {
    double at_s = 0;
    int64_t step = 0;
  };
  void take_step(const Json& event, double now_s);
  void add_checkpoint(pool::RunNotice& notice, double now_s);

  const int fd_;
  const std::vector<std::string> devices_;
  const size_t first_;
  const job::CheckpointSpec checkpoint_;
  std::vector<double> compute_s_, wait_s_;  ///< since the last notice, by rank
  double told_s_ = 0;
  int steps_ = 0;
  std::optional<Mark> kept_;     ///< nothing before the first step
  int64_t checkpoint_step_ = 0;  ///< of the last one; 0: none yet
  int64_t step_ = 0;             ///< the last one that was heard of
  double paced_s_ = 0;           ///< a step took so long of late, with all that was done between them
};

}  // namespace remuda::cli
