#include "compress/portable.h"

#include <cmath>
#include <cstddef>

#include "base/vector_clones.h"

namespace remuda::compress {
namespace {

constexpr size_t kSums = 16;  // as many as fill the registers that a compiler may use

REMUDA_VECTOR_CLONES void add_scaled_to(float* __restrict to, float factor, const float* __restrict values,
                                        size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] += factor * values[i];
}

REMUDA_VECTOR_CLONES double dot_of(const float* __restrict a, const float* __restrict b, size_t count) {
  double sums[kSums] = {};
  const size_t whole = count / kSums * kSums;
  for (size_t i = 0; i < whole; i += kSums)
    for (size_t lane = 0; lane < kSums; ++lane) sums[lane] += double(a[i + lane]) * double(b[i + lane]);
  double sum = 0;
  for (const double lane : sums) sum += lane;
  for (size_t i = whole; i < count; ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

REMUDA_VECTOR_CLONES void descend_by(float* __restrict values, float keep, float rate,
                                     const float* __restrict direction, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = keep * values[i] - rate * direction[i];
}

REMUDA_VECTOR_CLONES void descend_by_momentum(MomentumStep step, float* __restrict values, float* __restrict momentum,
                                              const float* __restrict gradient, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    momentum[i] = step.keep * momentum[i] + (step.take * gradient[i] + step.decay * values[i]);
    values[i] -= step.rate * momentum[i];
  }
}

REMUDA_VECTOR_CLONES void descend_by_adam(AdamStep step, float* __restrict values, float* __restrict mean,
                                          float* __restrict square, const float* __restrict gradient, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    mean[i] = step.keep_mean * mean[i] + step.take * gradient[i];
    square[i] = step.keep_square * square[i] + step.take_square * (gradient[i] * gradient[i]);
    values[i] = step.keep * values[i] - step.rate * (mean[i] / (std::sqrt(square[i]) + step.epsilon));
  }
}

}  // namespace

void add_scaled(std::span<float> to, float factor, std::span<const float> values) {
  add_scaled_to(to.data(), factor, values.data(), to.size());
}

double dot(std::span<const float> a, std::span<const float> b) { return dot_of(a.data(), b.data(), a.size()); }

void descend(std::span<float> values, float keep, float rate, std::span<const float> direction) {
  descend_by(values.data(), keep, rate, direction.data(), values.size());
}

void descend(const MomentumStep& step, std::span<float> values, std::span<float> momentum,
             std::span<const float> gradient) {
  descend_by_momentum(step, values.data(), momentum.data(), gradient.data(), values.size());
}

void descend(const AdamStep& step, std::span<float> values, std::span<float> mean, std::span<float> square,
             std::span<const float> gradient) {
  descend_by_adam(step, values.data(), mean.data(), square.data(), gradient.data(), values.size());
}

}  // namespace remuda::compress
