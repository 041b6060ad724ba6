// FrozenAdam: Adam's arithmetic once its variance is frozen, in float32 on the host: the compressed stage of 1-bit Adam
// (Tang et al. 2021, arXiv:2102.02888).
//
// With the variance frozen, Adam divides the momentum by constants. Here it is kept divided ("direction"), and so is
// each gradient before it is added: the same numbers, but what is packed into one bit each is then of one size within a
// chunk, however rare a parameter's gradients are. (The paper packs the momentum before it is divided.) A parameter
// that has had no gradient until then, or next to none, has no variance to divide by, and gets no direction: its
// inverse root is 0.
//
// A step along the direction is descend() of portable.h. Pure. Products and sums are rounded one by one, so every
// processor gives the same bits.
#pragma once

#include <span>

namespace remuda::compress {

/// In place of the variance: 1 / (sqrt(variance / correction) + epsilon), or 0 where that root is no larger than
/// epsilon: the first gradient worth the name would be divided by next to nothing.
void invert_root(std::span<float> variance, double correction, double epsilon);

/// In place of the momentum: its direction.
void divide(std::span<float> momentum, std::span<const float> inverse_root);

/// to += keep direction + take gradient inverse_root.
void add_step(std::span<float> to, float keep, std::span<const float> direction, float take,
              std::span<const float> gradient, std::span<const float> inverse_root);

}  // namespace remuda::compress
