#include "parallel/mean_loss.h"

#include <torch/csrc/autograd/generated/Functions.h>

namespace remuda::parallel {
namespace {

namespace nodes = torch::autograd::generated;

template <typename Node>
bool is_mean_by(const torch::autograd::Node* node) {
  const auto* const loss = dynamic_cast<const Node*>(node);
  return loss && loss->reduction == at::Reduction::Mean;
}

}  // namespace

bool is_mean(const torch::Tensor& loss) {
  const torch::autograd::Node* const node = loss.defined() ? loss.grad_fn().get() : nullptr;
  if (dynamic_cast<const nodes::MeanBackward0*>(node) || dynamic_cast<const nodes::MeanBackward1*>(node)) return true;
  return is_mean_by<nodes::NllLossBackward0>(node) || is_mean_by<nodes::NllLoss2DBackward0>(node) ||
         is_mean_by<nodes::MseLossBackward0>(node) || is_mean_by<nodes::SmoothL1LossBackward0>(node) ||
         is_mean_by<nodes::HuberLossBackward0>(node) || is_mean_by<nodes::SoftMarginLossBackward0>(node) ||
         is_mean_by<nodes::MultiMarginLossBackward0>(node) || is_mean_by<nodes::MultilabelMarginLossBackward0>(node) ||
         is_mean_by<nodes::BinaryCrossEntropyBackward0>(node);
}

}  // namespace remuda::parallel
