// Pace: measures a device's compute time, and lengthens it when the device simulates a slower one.
#pragma once

#include "base/clock.h"

namespace remuda::train {

class Pace {
 public:
  /// `slowdown` >= 1: compute that takes t seconds is made to take slowdown * t by sleeping the rest.
  Pace(double slowdown, Clock& clock) : slowdown_(slowdown), clock_(clock) {}

  /// Compute begins.
  void start();
  /// Called in the middle of compute, before other ranks may see its result: sleeps until the time so far is lengthened
  /// by `slowdown`.
  void stretch();
  /// Of the time since start(), so many seconds were none of compute.
  void leave_out(double seconds) { left_out_s_ += seconds; }
  /// Compute ends; sleeps in the same way. Returns its seconds, with the sleep.
  double stop();

 private:
  double slowdown_;
  Clock& clock_;
  bool running_ = false;
  double start_s_ = 0;
  double slept_s_ = 0, left_out_s_ = 0;
};

}  // namespace remuda::train
