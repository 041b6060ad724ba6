// Arithmetic on float32 in memory of the host that rounds alike on every processor, whatever instructions it has: for
// ranks that all compute the same thing, the steps of SGD and AdamW among it. Products, quotients and roots are rounded
// one by one, sums added up in one order.
//
// Pure. All spans of a call have the same size.
#pragma once

#include <span>

namespace remuda::compress {

/// to += factor values.
void add_scaled(std::span<float> to, float factor, std::span<const float> values);
/// In double.
double dot(std::span<const float> a, std::span<const float> b);

/// values = keep values - rate direction.
void descend(std::span<float> values, float keep, float rate, std::span<const float> direction);

/// b = keep b + (take g + decay p); p -= rate b. As train/update_rule.h has it.
struct MomentumStep {
  float keep = 0, take = 1, decay = 0, rate = 0;
};
void descend(const MomentumStep& step, std::span<float> values, std::span<float> momentum,
             std::span<const float> gradient);

/// m = keep_mean m + take g; v = keep_square v + take_square g^2; p = keep p - rate m / (sqrt(v) + epsilon), where rate
/// and epsilon have the bias corrections. As train/update_rule.h has it.
struct AdamStep {
  float keep_mean = 0, take = 1;
  float keep_square = 0, take_square = 1;
  float keep = 1, rate = 0, epsilon = 0;
};
void descend(const AdamStep& step, std::span<float> values, std::span<float> mean, std::span<float> square,
             std::span<const float> gradient);

}  // namespace remuda::compress
