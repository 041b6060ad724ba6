#include "balance/cost_line.h"

#include "base/check.h"

namespace remuda::balance {

// Normal equations of sum w * ((fixed + per_sample * batch) / seconds - 1)^2, with u = 1 / seconds, v = batch /
// seconds.
CostLine fit_line(std::span<const BatchTime> times) {
  REMUDA_CHECK(!times.empty(), "a line is fitted to something");
  double u = 0, v = 0, uu = 0, uv = 0, vv = 0;
  for (const BatchTime& time : times) {
    REMUDA_CHECK(time.batch > 0 && time.seconds > 0 && time.weight > 0, "a time is positive");
    const double inverse = 1 / time.seconds, pace = time.batch / time.seconds;
    u += time.weight * inverse;
    v += time.weight * pace;
    uu += time.weight * inverse * inverse;
    uv += time.weight * inverse * pace;
    vv += time.weight * pace * pace;
  }
  const CostLine proportional{0, times.back().seconds / times.back().batch};
  const double determinant = uu * vv - uv * uv;
  if (determinant <= 1e-9 * uu * vv) return proportional;
  const CostLine line{(u * vv - v * uv) / determinant, (v * uu - u * uv) / determinant};
  return line.fixed_s >= 0 && line.per_sample_s > 0 ? line : proportional;
}

}  // namespace remuda::balance
