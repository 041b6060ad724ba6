#include "train/loss.h"

#include "train/precision.h"

namespace remuda::train {
namespace {
namespace F = torch::nn::functional;

/// Not the number of any class, so that no target is ignored.
constexpr int64_t kNone = -100;
}  // namespace

LossSum loss_sum(job::Loss loss, const torch::Tensor& scores, const torch::Tensor& target, int64_t padding,
                 bool count_correct) {
  const int64_t ignore = padding < 0 ? kNone : padding;
  const auto rows = widened(scores.reshape({-1, scores.size(-1)}));
  const auto on_host = target.reshape({-1});
  const auto labels = on_host.to(scores.device(), /*non_blocking=*/true);
  LossSum result;
  switch (loss) {
    case job::Loss::cross_entropy:
      result.sum =
          F::cross_entropy(rows, labels, F::CrossEntropyFuncOptions().ignore_index(ignore).reduction(torch::kSum));
      break;
    case job::Loss::nll:
      result.sum = F::nll_loss(rows, labels, F::NLLLossFuncOptions().ignore_index(ignore).reduction(torch::kSum));
      break;
    case job::Loss::mse:
      result.sum = (rows - torch::one_hot(labels, rows.size(1)).to(rows.scalar_type())).square().mean(1).sum();
      break;
  }
  const auto counts = on_host.ne(ignore);
  result.weight = padding < 0 ? double(on_host.numel()) : counts.sum().item<double>();
  if (count_correct)
    result.correct = rows.argmax(1).to(torch::kCPU).eq(on_host).logical_and(counts).sum().item<int64_t>();
  return result;
}

}  // namespace remuda::train
