// What a difference between two ways is worth: measured in pairs, with an interval.
#pragma once

#include <span>

namespace remuda::measure {

/// Of pairs (a, b) the mean of b - a, and the interval in which it lies with some confidence: by Student's t of the n
/// differences, mean -+ t(1 - (1 - confidence) / 2, n - 1) * s / sqrt(n), where s is their standard deviation.
struct PairedDifference {
  double mean_a = 0, mean_b = 0;
  double mean = 0, low = 0, high = 0;

  /// Zero is not in the interval.
  bool is_real() const { return low > 0 || high < 0; }
};
/// Of as many `a` as `b`, at least two.
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, double confidence);

/// The same of positive values that differ by factors, as speeds do: of ln b - ln a, and brought back: mean, low and
/// high are b / a - 1.
PairedDifference paired_ratio(std::span<const double> a, std::span<const double> b, double confidence);

/// The t that a value of Student's distribution with so many degrees of freedom stays below with `probability`, 0.5 to
/// less than 1.
double student_t(double probability, int degrees);

}  // namespace remuda::measure
