#include "train/optimizer.h"

#include <cmath>
#include <numbers>

namespace remuda::train {

double learning_rate(const job::TrainSpec& spec, int step, int steps) {
  if (spec.schedule == job::Schedule::constant) return spec.learning_rate;
  return spec.learning_rate * (1 + std::cos(std::numbers::pi * step / steps)) / 2;
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const job::TrainSpec& spec, const torch::Tensor& values) {
  namespace optim = torch::optim;
  const std::vector<torch::Tensor> all{values};
  if (spec.optimizer == job::Optimizer::adamw)
    return std::make_unique<optim::AdamW>(all, optim::AdamWOptions(spec.learning_rate).weight_decay(spec.weight_decay));
  return std::make_unique<optim::SGD>(
      all, optim::SGDOptions(spec.learning_rate).momentum(spec.momentum).weight_decay(spec.weight_decay));
}

}  // namespace remuda::train
