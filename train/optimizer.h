// The optimizers of a run: libtorch's own, on the flat parameters.
#pragma once

#include <memory>

#include "job/train_job.h"
#include "train/torch_compat.h"

namespace remuda {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainSpec& spec, const torch::Tensor& values);

}  // namespace remuda
