#include "measure/paired.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "base/check.h"

namespace remuda::measure {
namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

/// The probability of -t to t: Abramowitz and Stegun, 26.7.3 and 26.7.4, which are finite sums.
double within(double t, int degrees) {
  const double angle = std::atan(t / std::sqrt(degrees)), cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = degrees == 1 ? 0 : term;
  for (int k = odd ? 3 : 2; k <= degrees - 2; k += 2) {
    term *= cosine * cosine * (k - 1) / k;
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

}  // namespace

double student_t(double probability, int degrees) {
  REMUDA_CHECK(probability >= 0.5 && probability < 1 && degrees >= 1, "a quantile of the upper half");
  const double inner = 2 * probability - 1;
  double low = 0, high = 1;
  while (within(high, degrees) < inner) high *= 2;
  for (int halving = 0; halving < 100; ++halving) {
    const double middle = (low + high) / 2;
    (within(middle, degrees) < inner ? low : high) = middle;
  }
  return high;
}

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, double confidence) {
  REMUDA_CHECK(a.size() == b.size() && a.size() >= 2, "an interval needs two pairs");
  const auto count = double(a.size());
  PairedDifference found{.mean_a = mean_of(a), .mean_b = mean_of(b)};
  found.mean = found.mean_b - found.mean_a;
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += std::pow(b[i] - a[i] - found.mean, 2);
  const double error = std::sqrt(squares / (count - 1) / count);
  const double reach = student_t(1 - (1 - confidence) / 2, int(a.size()) - 1) * error;
  found.low = found.mean - reach;
  found.high = found.mean + reach;
  return found;
}

PairedDifference paired_ratio(std::span<const double> a, std::span<const double> b, double confidence) {
  const auto logs = [](std::span<const double> values) {
    std::vector<double> result;
    for (const double value : values) result.push_back(std::log(value));
    return result;
  };
  const PairedDifference of_logs = paired_difference(logs(a), logs(b), confidence);
  return {mean_of(a), mean_of(b), std::expm1(of_logs.mean), std::expm1(of_logs.low), std::expm1(of_logs.high)};
}

}  // namespace remuda::measure
