// ExchangeLog: what steps took, and what this rank sent in them, for as long as ranks exchange gradients in one way.
//
// Medians, so that a step that another program held up says nothing of the others. The first step is left out where
// there are others: caches and allocators are cold in it.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "base/json.h"
#include "train/step_report.h"

namespace remuda::train {

/// Of one step.
struct ExchangeCosts {
  int steps = 0;  ///< that these are the medians of
  double step_s = 0;
  double sent_bytes = 0;  ///< to other ranks, over connections
  /// Of step_s: see ExchangeLog::timed(); NaN where no such times were known yet.
  double data_s = NAN, wait_s = NAN, gradient_wait_s = NAN;
};
Json to_json(const ExchangeCosts& costs);

class ExchangeLog {
 public:
  void made(double step_s, double sent_bytes);
  /// What all ranks say of the step that was made last: until the last one had its samples; and how long the one waited
  /// for others that waited least, and of that for gradients.
  void timed(const StepTotals& totals);
  /// Nothing where no step was made.
  std::optional<ExchangeCosts> costs() const;
  /// From now on ranks exchange in another way.
  void begin_again() { *this = {}; }

 private:
  bool is_timed_ = true;  ///< what was made last
  std::vector<double> step_s_, sent_bytes_, data_s_, wait_s_, gradient_wait_s_;
};

}  // namespace remuda::train
