#include "train/optimizer.h"

namespace remuda {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainSpec& spec, const torch::Tensor& values) {
  namespace optim = torch::optim;
  const std::vector<torch::Tensor> all{values};
  if (spec.optimizer == Optimizer::adamw)
    return std::make_unique<optim::AdamW>(all, optim::AdamWOptions(spec.learning_rate).weight_decay(spec.weight_decay));
  return std::make_unique<optim::SGD>(
      all, optim::SGDOptions(spec.learning_rate).momentum(spec.momentum).weight_decay(spec.weight_decay));
}

}  // namespace remuda
