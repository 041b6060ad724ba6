// The update rules: what an optimizer does to a range of the parameters, from the gradient and its own state.
//
// The same formulas as libtorch's torch::optim (SGD without dampening and Nesterov; AdamW: Loshchilov and Hutter 2019,
// arXiv:1711.05101), in fewer passes over memory: the gradient's factor is part of the first use of the gradient.
#pragma once

#include <cstddef>
#include <vector>

#include "train/torch_compat.h"

namespace remuda::train {

struct UpdateRule {
  enum class Kind { sgd, adamw };
  Kind kind = Kind::sgd;
  double momentum = 0;                ///< sgd
  double beta1 = 0.9, beta2 = 0.999;  ///< adamw
  double epsilon = 1e-8;              ///< adamw

  /// Values of state for each parameter.
  size_t states() const { return kind == Kind::adamw ? 2 : momentum > 0 ? 1 : 0; }
  bool needs_scratch() const { return kind == Kind::adamw; }
};

/// Whose memory and arithmetic owners of parameters update with.
enum class UpdatesOn { device, host };

/// What differs between parameter groups.
struct GroupSettings {
  double learning_rate = 0.1;
  double weight_decay = 0;
};

/// The same ranges of the parameters, the gradient and the optimizer's state: a list of tensors each.
struct UpdateRanges {
  std::vector<torch::Tensor> values, gradients;
  std::vector<std::vector<torch::Tensor>> states;  ///< UpdateRule::states() lists
  torch::Tensor scratch;  ///< flat; where UpdateRule::needs_scratch(), room for as many values as all ranges have
};

/// What clipping to `clip_norm` multiplies a gradient of that norm by; 1 where that is 0: no limit.
double clip_factor(double norm, double clip_norm);

/// One step, the `step`th, counted from 1. The gradient is what `ranges` has times `gradient_factor`. Queued on the
/// current stream of the ranges' device, of which it takes no memory: so it cannot run out of it half-way.
void update(const UpdateRule& rule, const GroupSettings& settings, int64_t step, double gradient_factor,
            UpdateRanges& ranges);

}  // namespace remuda::train
