// Trace: the time of each step of each device of a run, as `remuda train --trace FILE` writes it and as Replay reads
// it. docs/run-report.md describes the format: lines of JSON, a head and then a line per step.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "balance/cost_line.h"
#include "base/result.h"

namespace remuda::balance {

struct TraceDevice {
  std::string id;
  double slowdown = 1;
  std::vector<BatchTime> alone;  ///< measured before training
};

struct TraceHead {
  int global_batch = 0;
  std::vector<TraceDevice> devices;
};

/// A step that was applied. Per device, in rank order.
struct TraceStep {
  int step = 0;             ///< from 1
  std::vector<int> shares;  ///< samples that it took
  std::vector<double> compute_s;
  std::vector<double> wait_s;
};

struct Trace {
  TraceHead head;
  std::vector<TraceStep> steps;
};

/// One line each, without its end. Times are rounded to microseconds.
std::string trace_line(const TraceHead& head);
std::string trace_line(const TraceStep& step);

/// Reads what trace_line() wrote; `where` names the text in errors, which name the line. A last line that is cut off is
/// ignored, as a run may be killed while it writes.
Result<Trace> parse_trace(std::string_view text, std::string_view where);

}  // namespace remuda::balance
