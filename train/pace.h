// Pace: measures a device's compute, and stretches it when the device pretends to be slower.
#pragma once

#include "base/clock.h"

namespace remuda::train {

class Pace {
 public:
  /// `slowdown` >= 1: compute that takes t seconds is made to take slowdown * t by sleeping the rest.
  Pace(double slowdown, Clock& clock) : slowdown_(slowdown), clock_(clock) {}

  /// Compute begins.
  void start();
  /// In the middle of compute, before others may see its result: sleeps until the time so far is stretched.
  void stretch();
  /// Compute ends, stretched. Gives its seconds, sleep included.
  double stop();

 private:
  double slowdown_;
  Clock& clock_;
  bool running_ = false;
  double start_s_ = 0;
  double slept_s_ = 0;
};

}  // namespace remuda::train
