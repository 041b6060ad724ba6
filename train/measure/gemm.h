// The rate of matrix products on one device, by precision.
#pragma once

#include <functional>
#include <torch/torch.h>
#include <vector>

#include "device/inventory.h"

namespace remuda::train {

struct GemmOptions {
  double seconds = 0;          ///< for each precision
  double shortest_s = 0.005;   ///< one product takes this long at least, where `largest` allows it
  int64_t largest = 8192;      ///< most rows of a matrix
  std::function<void()> wait;  ///< returns when the device has finished all its work
};

/// Products of two square matrices, 2 n^3 operations each: n is doubled until one takes long enough, then the median of
/// several counts. In float64, float32, bfloat16 and float16; a precision that the device does not support is left out.
std::vector<MeasuredGemm> gemm_rates(const at::Device& device, const GemmOptions& options);

}  // namespace remuda::train
