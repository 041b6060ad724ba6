// Clock: time and sleep, injected so that tests and simulators decide how it passes.
#pragma once

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

}  // namespace remuda
