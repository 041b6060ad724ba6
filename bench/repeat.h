// How a collective call is timed, the same for remuda and its peers (allreduce_mpi.cc includes this file,
// allreduce_gloo.py says the same in Python):
//
//   five times to find the speed, then for `seconds`, at least 10 and at most 20000 times:
//     fill the own buffer anew (so that the data is in the own cache, or where it fits, as after a backward pass)
//     barrier
//     time the call
//   the figure is the median of the times, of the rank where that is larger (the one that leaves the barrier first
//   waits for the other, and the other finds work done).
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "measure/repeat.h"

namespace remuda::bench {

constexpr double kSecondsPerFigure = 1.5;

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

using measure::median;

/// `prepare` is not timed and ends with a barrier. `agree` makes both ranks use rank 0's number.
template <typename Prepare, typename Call, typename Agree>
double median_s(double seconds, Prepare prepare, Call call, Agree agree) {
  const auto timed = [&] {
    prepare();
    const double start = now_s();
    call();
    return now_s() - start;
  };
  const double start = now_s();
  for (int i = 0; i < 5; ++i) timed();
  const double each = (now_s() - start) / 5;
  const int times = agree(static_cast<int>(std::clamp(seconds / each, 10.0, 20000.0)));
  std::vector<double> taken(times);
  for (double& t : taken) t = timed();
  return median(std::move(taken));
}

}  // namespace remuda::bench
