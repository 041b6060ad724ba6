#include "train/model/blocks.h"

namespace remuda::train {

torch::Tensor watched(BlockWatch& watch, size_t number, const Block& block, const torch::Tensor& input) {
  watch.before_forward(number);
  torch::Tensor output = block(input);
  if (watch.holds(number, output)) output = output.clone();
  watch.after_forward(number);
  if (output.requires_grad())
    output.register_hook([&watch, number](const torch::Tensor&) { watch.before_backward(number); });
  return output;
}

}  // namespace remuda::train
