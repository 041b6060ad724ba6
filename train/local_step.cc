#include "train/local_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace remuda::train {
namespace {

/// A single step of a single device; other ranks give up on it sooner or later too.
constexpr double kStepTimeout_s = 3600;

std::string shape_text(const torch::Tensor& tensor) {
  return fmt::format("{} of shape [{}]", toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

/// The shape that scores for one sample must have, in words; empty when these have it.
std::string shape_missed(const torch::Tensor& scores, const torch::Tensor& target, int classes) {
  const bool tokens = target.dim() == 2;
  const bool fits = scores.is_floating_point() && scores.dim() == target.dim() + 1 && scores.size(0) == 1 &&
                    (tokens ? scores.size(1) == target.size(1) : scores.size(1) >= classes);
  if (fits) return "";
  return tokens ? fmt::format("scores of shape [1, {}, vocabulary]", target.size(1))
                : fmt::format("scores of shape [1, classes], with {} classes", classes);
}

}  // namespace

Result<void> LocalStep::check_model(const std::string& name) {
  const torch::NoGradGuard no_grad;
  const std::vector<uint64_t> one{0};
  const Batch batch = samples_.gather(one, torch::kFloat);
  model_.set_training(false);
  Result<void> result;
  try {
    const auto scores = model_.forward(batch.input.to(ops_.device()));
    const std::string missed = shape_missed(scores, batch.target, samples_.model_input().classes);
    if (!missed.empty())
      result = usage_error(
          fmt::format("the model {} gives {} for one sample; it must give {}", name, shape_text(scores), missed));
  } catch (const std::exception& error) {
    result = usage_error(
        fmt::format("the model {} cannot take one sample, {}: {}", name, shape_text(batch.input), first_line(error)));
  }
  model_.set_training(true);
  return result;
}

LossSum LocalStep::forward(std::span<const uint64_t> indices) {
  const Batch batch = samples_.gather(indices, torch::kFloat);
  if (!ops_.is_synchronous()) on_host_ = batch;
  const auto input = batch.input.to(ops_.device(), /*non_blocking=*/true);
  const auto scores = [&] {
    const Autocast autocast(ops_.device(), compute_type_);
    return model_.forward(input);
  }();
  return loss_sum(loss_, scores, batch.target, padding_);
}

void LocalStep::wait_for_device() const {
  if (const auto done = ops_.wait(ops_.here(), "a step", kStepTimeout_s); !done)
    throw std::runtime_error(done.error().message);
}

double LocalStep::run(std::span<const uint64_t> indices, StepReport report, DataParallel& parallel, double loss_scale) {
  pace_.start();
  bool begun = false;
  try {
    LossSum loss;
    if (!indices.empty()) {
      loss = forward(indices);
      report.weight = loss.weight;
    }
    parallel.begin(report, loss_scale);
    begun = true;
    if (loss.sum.defined()) {
      (loss_scale == 1 ? loss.sum : loss.sum * loss_scale).backward();
      wait_for_device();
      parallel.report().loss_sum = loss.sum.item<double>();
    }
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    if (!begun) parallel.begin(report);
    parallel.give_up(kOutOfMemory);
    failed_.clear();
  }
  return pace_.stop();
}

bool LocalStep::run_alone(std::span<const uint64_t> indices) {
  try {
    forward(indices).sum.backward();
    wait_for_device();
    return true;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    failed_.clear();
    return false;
  }
}

}  // namespace remuda::train
