// StepTimes: the time of each step of each device of a run, as `remuda train --step-times FILE` writes it and as Replay
// reads it. docs/run-report.md describes the format: lines of JSON, a head and then a line per step.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "balance/cost_line.h"
#include "base/result.h"

namespace remuda::balance {

struct TimedDevice {
  std::string id;
  double slowdown = 1;
  std::vector<BatchTime> alone;  ///< measured before training
};

struct StepTimesHead {
  int global_batch = 0;
  std::vector<TimedDevice> devices;
};

/// A step that was applied. Per device, in rank order.
struct TimedStep {
  int step = 0;             ///< from 1
  std::vector<int> shares;  ///< samples that it took
  std::vector<double> compute_s;
  std::vector<double> wait_s;
};

struct StepTimes {
  StepTimesHead head;
  std::vector<TimedStep> steps;
};

/// One line each, without its end. Times are rounded to microseconds.
std::string step_times_line(const StepTimesHead& head);
std::string step_times_line(const TimedStep& step);

/// Reads what step_times_line() wrote; `where` names the text in errors, which name the line. A last line that is cut
/// off is ignored, as a run may be killed while it writes.
Result<StepTimes> parse_step_times(std::string_view text, std::string_view where);

}  // namespace remuda::balance
