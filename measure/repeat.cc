#include "measure/repeat.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace remuda::measure {
namespace {

constexpr size_t kAtLeast = 3;
constexpr size_t kAtMost = 100'000;

}  // namespace

double median(std::vector<double> values) {
  REMUDA_CHECK(!values.empty(), "there is no middle of nothing");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_s(double seconds, const std::function<double()>& timed) {
  timed();
  std::vector<double> taken;
  const double end_s = monotonic_s() + seconds;
  while (taken.size() < kAtLeast || (monotonic_s() < end_s && taken.size() < kAtMost)) taken.push_back(timed());
  return median(std::move(taken));
}

double time_s(const std::function<void()>& call) {
  const double start_s = monotonic_s();
  call();
  return monotonic_s() - start_s;
}

}  // namespace remuda::measure
