// RunReporter: reports how a run goes to the keeper of the job that it is in (run/run_board.h): so that others see how
// far it has come, what its devices wait for is counted, and who waits for another rank is not taken for idle.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace remuda::cli {

/// One thread.
class RunReporter {
 public:
  static constexpr double kEvery_s = 5;

  /// `fd` is that of the board; -1: nobody listens. `devices` are the ids of those of the ranks that run here, the
  /// first of which has the number `first`.
  RunReporter(int fd, std::vector<std::string> devices, int first)
      : fd_(fd), devices_(std::move(devices)), first_(static_cast<size_t>(first)) {}

  /// An event of the run; `now_s` is a steady time.
  void take(const Json& event, double now_s);

 private:
  const int fd_;
  const std::vector<std::string> devices_;
  const size_t first_;
  std::vector<double> compute_s_, wait_s_;  ///< since the last notice, by rank
  double told_s_ = 0;
  int steps_ = 0;
};

}  // namespace remuda::cli
