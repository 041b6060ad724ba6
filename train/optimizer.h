// The optimizers of a run: libtorch's own, on the flat parameters.
#pragma once

#include <memory>

#include "job/train_job.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// The learning rate of step `step` of `steps`, counted from 0. Cosine: Loshchilov and Hutter 2017, arXiv:1608.03983.
double learning_rate(const job::TrainSpec& spec, int step, int steps);

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const job::TrainSpec& spec, const torch::Tensor& values);

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

}  // namespace remuda::train
