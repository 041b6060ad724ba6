// Heartbeat: until when an agent was there, as the next one finds it.
#pragma once

#include <string>

#include "base/clock.h"

namespace remuda::agent {

/// One thread. Times are those of the steady clock unless they say so.
class Heartbeat {
 public:
  /// Looks at the traces of the agent before this one: to be made before the pool in this folder is opened.
  explicit Heartbeat(const std::string& pool);

  /// When that was there last, on the wall clock; 0: nobody knows.
  double seen_s() const { return seen_s_; }
  /// Leaves a trace, once a minute as long as jobs run.
  void step(bool jobs_run, double now_s);
  /// When step() is to be called at the latest.
  double next_s() const { return next_s_; }

 private:
  std::string path_;
  double seen_s_ = 0;
  double next_s_ = 0;
};

}  // namespace remuda::agent
