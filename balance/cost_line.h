// CostLine: one device's time for a batch, seconds = fixed + per_sample * batch, fitted to what was measured.
#pragma once

#include <span>

namespace remuda::balance {

struct CostLine {
  double fixed_s = 0;
  double per_sample_s = 0;
  double seconds(double batch) const { return fixed_s + per_sample_s * batch; }
};

/// A device's time for a batch, and its weight among other such times.
struct BatchTime {
  int batch = 0;
  double seconds = 0;
  double weight = 1;
};

/// The line with the least sum of weighted squares of relative errors: noise grows with the time it disturbs. Where
/// there are not two batch sizes, or the best line has a negative part, times are assumed to be proportional to the
/// batch. Batches, times and weights are positive; there is at least one time.
CostLine fit_line(std::span<const BatchTime> times);

}  // namespace remuda::balance
