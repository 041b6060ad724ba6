#include "train/local_step.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "profile/recorder.h"
#include "train/error_text.h"

namespace remuda::train {
namespace {

int64_t divided_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

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

Result<void> LocalStep::check_model(const std::string& name, const Batch& one, int classes) {
  const torch::NoGradGuard no_grad;
  model_.set_training(false);
  Result<void> result;
  try {
    const auto scores = model_.forward(one.input.to(model_.parameters().at(0).device()));
    const std::string missed = shape_missed(scores, one.target, classes);
    if (!missed.empty())
      result = usage_error(
          fmt::format("the model {} gives {} for one sample; it must give {}", name, shape_text(scores), missed));
  } catch (const std::exception& error) {
    result = usage_error(
        fmt::format("the model {} cannot take one sample, {}: {}", name, shape_text(one.input), sentence_of(error)));
  }
  model_.set_training(true);
  return result;
}

std::string LocalStep::why_too_few(const Batch& few) {
  const torch::NoGradGuard no_grad;
  const auto are_numbers = [&] {
    const std::vector<NormStatistics> all = model_.norm_statistics();
    return std::ranges::all_of(all,
                               [](const auto& norm) { return norm.variance.isfinite().all().template item<bool>(); });
  };
  const bool were_numbers = are_numbers();
  try {
    const torch::Tensor scores = model_.forward(few.input.to(model_.parameters().at(0).device()));
    if (!were_numbers || !scores.isfinite().all().item<bool>()) return "";  // there are other reasons
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) return "";  // which is found out, and said, where it is measured
    return sentence_of(error);
  }
  return !are_numbers() ? "one value for each channel has no variance" : "";
}

int64_t LocalStep::pieces_in(const Batch& batch) const {
  const int64_t samples = batch.input.size(0);
  const int64_t count = options_.micro_batch > 0 ? divided_up(samples, options_.micro_batch) : int64_t(pieces_);
  return std::clamp<int64_t>(count, 1, std::max<int64_t>(1, options_.micro_batch > 0 ? samples : samples / least_));
}

int64_t LocalStep::largest_piece(const Batch& batch) const {
  const int64_t samples = batch.input.size(0);
  return options_.micro_batch > 0 ? std::min(samples, options_.micro_batch) : divided_up(samples, pieces_in(batch));
}

/// None of them empty. A part without samples is one piece without samples.
std::vector<Batch> LocalStep::pieces_of(const Batch& batch) const {
  const int64_t samples = batch.input.size(0), count = pieces_in(batch), unit = options_.micro_batch;
  const auto start = [&](int64_t i) { return unit > 0 ? std::min(i * unit, samples) : i * samples / count; };
  std::vector<Batch> pieces;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = start(i), size = start(i + 1) - begin;
    pieces.push_back({batch.input.narrow(0, begin, size), batch.target.narrow(0, begin, size)});
  }
  return pieces;
}

LossSum LocalStep::forward(const Batch& batch) {
  const profile::Span span("forward");
  if (!ops_.is_synchronous()) on_host_.push_back(batch);
  const auto input = batch.input.to(ops_.device(), /*non_blocking=*/true);
  const auto scores = [&] {
    const Autocast autocast(ops_.device(), options_.compute_type);
    const ActivationSpill::Scope scope(spill(), spill() ? parameters_and_buffers() : std::vector<torch::Tensor>());
    return model_.forward(input);
  }();
  return loss_sum(options_.loss, scores, batch.target, options_.padding);
}

std::vector<torch::Tensor> LocalStep::parameters_and_buffers() {
  std::vector<torch::Tensor> all = model_.parameters();
  for (const torch::Tensor& buffer : model_.buffers()) all.push_back(buffer);
  return all;
}

/// Until it has done what it was given, as its time is being taken. A device that is lost, or hangs, throws.
void LocalStep::wait_for(const Moment& moment) {
  if (const auto done = ops_.wait(moment, "a step", options_.timeout_s); !done)
    throw std::runtime_error(done.error().message);
  if (spill_) spill_->settle();
}

/// Likewise. The sum of these losses, in double precision.
double LocalStep::wait_for_losses(const std::vector<torch::Tensor>& sums) {
  double all = 0;
  if (!options_.one_wait || ops_.is_synchronous() || sums.empty()) {
    wait_for(ops_.here());
    for (const torch::Tensor& sum : sums) all += sum.item<double>();
    return all;
  }
  const torch::NoGradGuard no_grad;
  if (!loss_) loss_.emplace(HostRoom::of_its_own(ops_, 1, torch::kDouble));
  const torch::Tensor sum = torch::stack(sums).to(torch::kDouble).sum().view({1});
  wait_for(ops_.copy(loss_->tensor(), sum, ops_.here()));
  return loss_->tensor().item<double>();
}

double LocalStep::run(const Batch& batch, StepReport report, DataParallel& parallel, double loss_scale) {
  const profile::Span span("forward and backward");
  pace_.start();
  on_host_.clear();
  parallel.set_loss_scale(loss_scale);
  bool begun = false;
  try {
    const auto pieces = pieces_of(batch);
    std::vector<torch::Tensor> sums;
    for (size_t i = 0; i < pieces.size(); ++i) {
      LossSum loss;
      if (pieces[i].input.size(0) > 0) {
        const std::unique_ptr<ParameterWatch> watch = parallel.watch_parameters();
        loss = forward(pieces[i]);
      }
      report.weight += loss.weight;
      if (i + 1 < pieces.size()) {
        parallel.accumulate();
      } else {
        parallel.begin(report, loss_scale);
        begun = true;
      }
      if (!loss.sum.defined()) continue;
      const profile::Span span("backward");
      (loss_scale == 1 ? loss.sum : loss.sum * loss_scale).backward();
      sums.push_back(loss.sum.detach());
    }
    parallel.report().loss_sum += wait_for_losses(sums);
  } catch (const std::exception& error) {
    const bool of_others = (options_.norms && !options_.norms->outcome()) || parallel.has_failed();  // see reduce()
    if (!is_out_of_memory(error) && !of_others) throw;
    if (!begun) parallel.begin(report);
    parallel.give_up(kOutOfMemory);
    failed_.clear();
  }
  return pace_.stop();
}

bool LocalStep::run_alone(const Batch& batch) {
  const NormExchange::Alone alone(options_.norms);
  on_host_.clear();
  try {
    for (const Batch& piece : pieces_of(batch)) forward(piece).sum.backward();
    wait_for(ops_.here());
    return true;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    failed_.clear();
    return false;
  }
}

}  // namespace remuda::train
