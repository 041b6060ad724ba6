#include "train/update_rule.h"

#include <algorithm>
#include <cmath>

namespace remuda::train {
namespace {

constexpr double kClipEpsilon = 1e-6;  ///< as torch::nn::utils::clip_grad_norm_ has it

/// b = momentum b + (g + decay p); p -= rate b. The state begins with zeros, so the first step needs no case of its
/// own.
void update_sgd(const UpdateRule& rule, const GroupSettings& settings, double factor, UpdateRanges& at) {
  if (rule.states() == 0) {
    if (settings.weight_decay > 0) at::_foreach_mul_(at.values, 1 - settings.learning_rate * settings.weight_decay);
    return at::_foreach_add_(at.values, at.gradients, -settings.learning_rate * factor);
  }
  auto& momentum = at.states[0];
  at::_foreach_mul_(momentum, rule.momentum);
  at::_foreach_add_(momentum, at.gradients, factor);
  if (settings.weight_decay > 0) at::_foreach_add_(momentum, at.values, settings.weight_decay);
  at::_foreach_add_(at.values, momentum, -settings.learning_rate);
}

/// The square roots, in scratch memory.
std::vector<torch::Tensor> roots_of(const std::vector<torch::Tensor>& squares, const torch::Tensor& scratch) {
  std::vector<torch::Tensor> roots;
  int64_t begin = 0;
  for (const torch::Tensor& square : squares) {
    roots.push_back(scratch.narrow(0, begin, square.numel()));
    at::sqrt_out(roots.back(), square);
    begin += square.numel();
  }
  return roots;
}

/// p *= 1 - rate decay; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= rate m^ / (sqrt(v^) + e), with the bias
/// corrections m^ = m / (1 - b1^t) and v^ = v / (1 - b2^t) taken out of the loop.
void update_adamw(const UpdateRule& rule, const GroupSettings& settings, int64_t step, double factor,
                  UpdateRanges& at) {
  auto& mean = at.states[0];
  auto& square = at.states[1];
  const double correction1 = 1 - std::pow(rule.beta1, double(step));
  const double correction2 = std::sqrt(1 - std::pow(rule.beta2, double(step)));
  if (settings.weight_decay > 0) at::_foreach_mul_(at.values, 1 - settings.learning_rate * settings.weight_decay);
  at::_foreach_mul_(mean, rule.beta1);
  at::_foreach_add_(mean, at.gradients, (1 - rule.beta1) * factor);
  at::_foreach_mul_(square, rule.beta2);
  at::_foreach_addcmul_(square, at.gradients, at.gradients, (1 - rule.beta2) * factor * factor);
  std::vector<torch::Tensor> root = roots_of(square, at.scratch);
  at::_foreach_add_(root, rule.epsilon * correction2);
  at::_foreach_addcdiv_(at.values, mean, root, -settings.learning_rate * correction2 / correction1);
}

}  // namespace

double clip_factor(double norm, double clip_norm) {
  return clip_norm > 0 ? std::min(1.0, clip_norm / (norm + kClipEpsilon)) : 1;
}

void update(const UpdateRule& rule, const GroupSettings& settings, int64_t step, double gradient_factor,
            UpdateRanges& ranges) {
  const torch::NoGradGuard no_grad;
  if (rule.kind == UpdateRule::Kind::adamw)
    update_adamw(rule, settings, step, gradient_factor, ranges);
  else
    update_sgd(rule, settings, gradient_factor, ranges);
}

}  // namespace remuda::train
