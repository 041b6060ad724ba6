// ManualClock: a clock that stands still until it is told to go on. For tests only.
#pragma once

#include "base/clock.h"

namespace remuda {

class ManualClock final : public Clock {
 public:
  double now_s() override { return now_s_; }
  void sleep_s(double seconds) override { now_s_ += seconds; }

 private:
  double now_s_ = 1000;
};

}  // namespace remuda
