// What batch norm asks of a run: enough samples at a time, and statistics that do not depend on the split.
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "balance/shares.h"
#include "base/clock.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

constexpr int kMostTried = 2;  ///< samples at a time: whoever refuses these refuses more for the same reason

std::string model_name(const job::TrainJob& job) { return job.model.path.empty() ? job.model.name : job.model.path; }

/// A usage error where the run would have a step, or a micro-batch, of fewer samples than the model takes.
Result<void> check_least(const job::TrainJob& job, uint64_t samples, int steps, int least, const std::string& why) {
  const auto refuse = [&](uint64_t left, const std::string& where) {
    return usage_error(fmt::format("the model {} cannot train on {} sample{} at a time ({}), as {}", model_name(job),
                                   left, left == 1 ? "" : "s", why, where));
  };
  const auto batch = uint64_t(job.train.global_batch), micro = uint64_t(job.train.micro_batch), few = uint64_t(least);
  if (micro > 0 && micro < few) return refuse(micro, fmt::format("train.micro_batch = {} asks for", micro));
  if (batch < few) return refuse(batch, fmt::format("train.global_batch = {} asks for", batch));
  const uint64_t last = samples % batch, piece = micro > 0 ? last % micro : last;
  const bool has_last = last > 0 && uint64_t(steps) > samples / batch;
  if (!has_last || piece == 0 || piece >= few) return {};
  return refuse(
      piece, fmt::format("is left of {} samples for the last {} of each epoch; another train.{} leaves more", samples,
                         micro > 0 ? "micro-batch" : "step", micro > 0 ? "micro_batch" : "global_batch"));
}

}  // namespace

/// Of the data to train on; as many as there are.
Result<Batch> Trainer::first_samples(int count) const {
  std::vector<uint64_t> indices(std::min<size_t>(size_t(count), train_.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return train_.gather(indices);
}

/// Collective. A model may refuse a single sample, as its batch norm asks for more than one value for each channel:
/// then no part, no piece and no trial has so few; or no step, where all ranks are normalised together.
Result<void> Trainer::find_least_part() {
  if (job_.model.path.empty() && model_->norm_statistics().empty()) return {};
  std::string why;
  int mine = 0;
  for (std::string refusal = "untried"; !refusal.empty();) {
    REMUDA_ASSIGN(const Batch few, first_samples(++mine));
    start_.keep();
    refusal = local_.why_too_few(few);
    start_.restore();
    if (refusal.empty()) continue;
    if (mine == kMostTried || few.input.size(0) < mine)
      return usage_error(
          fmt::format("the model {} cannot train on {}: {}", model_name(job_), shape_text(few.input), refusal));
    why = refusal;
  }
  REMUDA_ASSIGN(const std::vector<int> all, gather_all(communicator_, mine, label::kNeeds));
  const int least = std::ranges::max(all);
  if (least == 1) return {};
  REMUDA_TRY(check_least(job_, train_.size(), steps_in_all(), least, why));
  if (norms_) return {};
  least_ = least;
  local_.set_least(least_);
  memory_.set_least(least_);
  batches_.set_unit(share_unit(), job_.train.micro_batch > 0 ? 1 : least_);
  report_.least_samples = least_;
  if (is_first() && communicator_.size() > 1)
    events_.send({{"event", "note"},
                  {"text", fmt::format("{} trains on {} samples at least ({}): shares are multiples of {}",
                                       model_name(job_), least_, why, share_unit())}});
  return {};
}

/// Samples that a share is a multiple of.
int Trainer::share_unit() const {
  const int unit = job::share_unit(job_);
  return unit > 1 || least_ == 1 ? unit : balance::least_unit(job_.train.global_batch, least_);
}

/// Whether running statistics are those of one device that computes the micro-batches of all, one after another.
bool Trainer::counts_in_order() const { return job_.train.micro_batch > 0 && communicator_.size() > 1 && !norms_; }

/// Collective. A step that is dropped leaves no trace in them.
Result<void> Trainer::settle_statistics(bool stands, const std::vector<int>& parts) {
  if (!stands) return statistics_.restore(), Result<void>();
  if (!counts_in_order()) return {};
  std::vector<int> pieces;
  for (const int part : parts) pieces.push_back((part + job_.train.micro_batch - 1) / job_.train.micro_batch);
  const double start = monotonic_s();
  REMUDA_TRY(statistics_.join(communicator_, pieces));
  last_.wait_s += monotonic_s() - start;
  mine_.wait_s += monotonic_s() - start;
  return {};
}

/// Collective, where a run goes on: it may have been one in which each rank had statistics of its own.
Result<void> Trainer::make_statistics_the_same() {
  if (!counts_in_order()) return {};
  REMUDA_ASSIGN(const bool are_the_same, statistics_.are_the_same(communicator_));
  if (are_the_same) return {};
  return average_buffers(communicator_, statistics_.joined(), std::max(1.0, samples_since_average_));
}

/// Collective. Of what is each rank's own, the mean of all.
Result<void> Trainer::average_statistics() {
  std::vector<torch::Tensor> own = model_->buffers();
  if (counts_in_order())
    for (const torch::Tensor& joined : statistics_.joined())
      std::erase_if(own, [&](const torch::Tensor& one) { return one.is_same(joined); });
  return average_buffers(communicator_, own, std::exchange(samples_since_average_, 0));
}

}  // namespace remuda::train
