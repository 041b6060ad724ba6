// The squared norm of values in memory of the host.
#pragma once

#include <cstddef>
#include <span>

#include "train/torch_compat.h"

namespace remuda::train {

/// Not finite exactly when a value is not. Relative error at most about 1e-6: blocks are added up in float32.
double sum_of_squares(std::span<const float> values);
double sum_of_squares(std::span<const double> values);
/// Of a flat tensor, which lies one after the other.
double sum_of_squares(const torch::Tensor& values);

}  // namespace remuda::train
