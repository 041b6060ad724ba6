#include "train/evaluate.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "balance/shares.h"
#include "data/loader.h"
#include "train/labels.h"
#include "train/precision.h"

namespace remuda::train {
namespace {

/// Batches between two synchronizations of the ranks: none waits much longer than that for the slowest.
constexpr uint64_t kMeetEvery = 16;
constexpr size_t kPartsAhead = 2;

struct Sums {
  double loss = 0, weight = 0, correct = 0;
  double leaving = 0;

  Sums& operator+=(const Sums& other) {
    loss += other.loss;
    weight += other.weight;
    correct += other.correct;
    leaving += other.leaving;
    return *this;
  }
};

std::span<std::byte> bytes_of(torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

/// The parts of this rank, one of each batch.
std::vector<data::Range> parts_of(int rank, std::span<const int> shares, uint64_t samples) {
  const auto batch = std::accumulate(shares.begin(), shares.end(), uint64_t{0});
  std::vector<data::Range> parts;
  for (uint64_t first = 0; first < samples; first += batch) {
    const auto all = balance::apportion(int(std::min<uint64_t>(batch, samples - first)), shares);
    const uint64_t begin = first + uint64_t(std::accumulate(all.begin(), all.begin() + rank, int64_t{0}));
    parts.push_back({begin, uint64_t(all[size_t(rank)])});
  }
  return parts;
}

/// One rank's part.
class OwnEvaluation {
 public:
  OwnEvaluation(int rank, Model& model, const Samples& samples, const EvaluationPlan& plan, Pace& pace)
      : rank_(rank),
        model_(model),
        samples_(samples),
        loader_(samples.set(), data::SampleOrder::as_they_are(samples.size()), plan.workers, plan.memory),
        plan_(plan),
        pace_(pace),
        at_once_(uint64_t(std::clamp(plan.shares[rank], 1, std::max(1, plan.most)))) {}

  Sums sums;

  /// Adds the samples of a part, at most `at_once_` of them at a time; `after` are the next parts.
  Result<void> add(data::Range part, std::span<const data::Range> after) {
    while (part.count > 0) {
      const uint64_t count = std::min(at_once_, part.count);
      REMUDA_ASSIGN(const bool fits, try_batch({part.first, count}, after));
      if (fits) {
        part = {part.first + count, part.count - count};
        continue;
      }
      if (count == 1)
        return failed(
            fmt::format("rank {} ran out of memory in evaluation, with a single sample; use a smaller model", rank_));
      at_once_ = count / 2;
      plan_.goes_on_with(int(at_once_));
    }
    return {};
  }

 private:
  /// False when the memory is not enough.
  Result<bool> try_batch(data::Range range, std::span<const data::Range> after) {
    REMUDA_ASSIGN(const data::LoadedBatch loaded, loader_.take(range, after));
    const Batch batch = samples_.as_tensors(loaded, range.count);
    pace_.start();
    try {
      const auto scores = [&] {
        const Autocast autocast(plan_.device, plan_.compute_type);
        return model_.forward(batch.input.to(plan_.device));
      }();
      const auto loss = loss_sum(plan_.spec.loss, scores, batch.target, plan_.padding, true);
      sums += {loss.sum.item<double>(), loss.weight, double(loss.correct)};
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) {
        REMUDA_TRY(plan_.finish_passes());  // it may know better why
        throw;
      }
      return false;
    }
    pace_.stop();
    return true;
  }

  const int rank_;
  Model& model_;
  const Samples& samples_;
  data::Loader loader_;
  const EvaluationPlan& plan_;
  Pace& pace_;
  uint64_t at_once_;
};

Result<Sums> add_up(comm::Communicator& communicator, const Sums& mine) {
  std::vector<Sums> all(communicator.size());
  REMUDA_TRY(communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                                     label::kEvaluation));
  return std::accumulate(all.begin(), all.end(), Sums{}, [](Sums total, const Sums& sums) { return total += sums; });
}

/// Evaluation mode without gradients while it lives.
class Evaluating {
 public:
  explicit Evaluating(Model& model) : model_(model) { model_.set_training(false); }
  ~Evaluating() { model_.set_training(true); }

 private:
  torch::NoGradGuard no_grad_;
  Model& model_;
};

}  // namespace

Result<std::optional<Evaluation>> evaluate(comm::Communicator& communicator, Model& model, const Samples& samples,
                                           const EvaluationPlan& plan, Pace& pace) {
  const Evaluating evaluating(model);
  const int rank = communicator.rank();
  OwnEvaluation own(rank, model, samples, plan, pace);
  Sums total;
  const std::vector<data::Range> parts = parts_of(rank, plan.shares, samples.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto rest = std::span(parts).subspan(i + 1);
    REMUDA_TRY(own.add(parts[i], rest.first(plan.workers > 0 ? std::min(kPartsAhead, rest.size()) : 0)));
    const bool last = rest.empty();
    if (!last && (i + 1) % kMeetEvery != 0) continue;
    REMUDA_TRY(plan.finish_passes());
    own.sums.leaving = plan.leave() ? 1 : 0;
    REMUDA_ASSIGN(total, add_up(communicator, own.sums));
    if (!last && total.leaving > 0) return std::nullopt;
  }
  return Evaluation{total.loss / total.weight, total.correct / total.weight};
}

Result<void> average_buffers(comm::Communicator& communicator, const std::vector<torch::Tensor>& buffers,
                             double weight) {
  torch::NoGradGuard no_grad;
  if (buffers.empty()) return {};
  std::vector<double> weights(communicator.size());
  REMUDA_TRY(communicator.all_gather(std::as_bytes(std::span(&weight, 1)), std::as_writable_bytes(std::span(weights)),
                                     label::kBufferWeights));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (total == 0) return {};
  const auto most = int(std::ranges::max_element(weights) - weights.begin());
  for (const torch::Tensor& buffer : buffers) {
    auto mine = buffer.to(torch::kCPU).contiguous();
    if (!buffer.is_floating_point()) {
      REMUDA_TRY(communicator.broadcast(bytes_of(mine), most, label::kBuffers));
      buffer.copy_(mine);
      continue;
    }
    auto all = torch::empty({communicator.size(), mine.numel()}, mine.options());
    REMUDA_TRY(communicator.all_gather(bytes_of(mine), bytes_of(all), label::kBuffers));
    auto factors = torch::tensor(weights, torch::kDouble).div(total).to(mine.scalar_type());
    buffer.copy_(torch::matmul(factors, all).view(buffer.sizes()));
  }
  return {};
}

}  // namespace remuda::train
