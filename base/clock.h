// Clock: time and sleep, injected so that tests and simulators control them; and the machine's two clocks.
#pragma once

#include <limits>

namespace remuda {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds since an arbitrary start; never goes back.
  virtual double now_s() = 0;
  virtual void sleep_s(double seconds) = 0;
};

/// The machine's monotonic clock. Safe from any thread.
Clock& steady_clock();

/// Seconds on that clock: for waits and deadlines within this boot.
inline double monotonic_s() { return steady_clock().now_s(); }
/// A deadline that does not come.
inline constexpr double kNever_s = std::numeric_limits<double>::infinity();

/// Seconds since 1970, the calendar time; may be set back. For times that other processes and later boots read.
double wall_s();

}  // namespace remuda
