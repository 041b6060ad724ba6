// Whether a loss is a mean, where remuda needs the sum: by the operator that has made it, as autograd remembers it.
#pragma once

#include <torch/torch.h>

namespace remuda::parallel {

/// True where the last operator is mean(), or a loss function with Reduction::Mean, as all have unless told otherwise.
/// False where anything was done to it since, such as a multiplication by the number of losses, and without a graph.
bool is_mean(const torch::Tensor& loss);

}  // namespace remuda::parallel
