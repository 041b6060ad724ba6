#include "compress/frozen_adam.h"

#include <cmath>
#include <cstddef>

#include "base/vector_clones.h"

namespace remuda::compress {
namespace {

REMUDA_VECTOR_CLONES void add_step_of(float* __restrict to, float keep, const float* __restrict direction, float take,
                                      const float* __restrict gradient, const float* __restrict inverse_root,
                                      size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] += keep * direction[i] + take * (gradient[i] * inverse_root[i]);
}

}  // namespace

void invert_root(std::span<float> variance, double correction, double epsilon) {
  for (float& value : variance) {
    const double root = std::sqrt(value / correction);
    value = root > epsilon ? float(1 / (root + epsilon)) : 0;
  }
}

void divide(std::span<float> momentum, std::span<const float> inverse_root) {
  for (size_t i = 0; i < momentum.size(); ++i) momentum[i] *= inverse_root[i];
}

void add_step(std::span<float> to, float keep, std::span<const float> direction, float take,
              std::span<const float> gradient, std::span<const float> inverse_root) {
  add_step_of(to.data(), keep, direction.data(), take, gradient.data(), inverse_root.data(), to.size());
}

}  // namespace remuda::compress
