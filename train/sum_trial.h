// Sum trial: whether a device adds the products of a matrix multiplication up in float32.
//
// A product of 16-bit matrices may be cut along the dimension that is added up ("split-K"), as libraries do where that
// is long and the result small, as it is of a weight's gradient; and the pieces may be added up, or put down meanwhile,
// in 16 bits. Ones do not show that: their sums over powers of two are exact in any type. So the trial adds up values
// of which half are positive and come first, each with all bits that the shorter type has: what is left in the end is
// one, exactly, in float32 and in any order, and something else wherever parts of the sum were rounded to 16 bits. What
// they lose may be nothing together; so there are many such sums side by side, each of other values.
#pragma once

#include "train/torch_compat.h"

namespace remuda::train {

/// Rows to be added up, and columns, each of which has the sum one; few enough for a library to cut the sums. In
/// float32; bfloat16 and float16 have the values exactly.
inline constexpr int64_t kSumTrialRows = 8192, kSumTrialColumns = 32;
torch::Tensor sum_trial_values();

/// Whether products of this type add up in float32 on the device.
bool adds_up_in_float32(torch::Device device, torch::ScalarType type);

}  // namespace remuda::train
