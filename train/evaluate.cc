#include "train/evaluate.h"

#include <algorithm>
#include <numeric>

#include "balance/shares.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

constexpr int64_t kBatch = 256;

struct Sums {
  double loss = 0, weight = 0, correct = 0;
};

std::span<std::byte> bytes_of(torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

Result<Evaluation> evaluate(comm::Communicator& communicator, Model& model, const Samples& samples,
                            const job::ModelSpec& spec, int padding, std::span<const int> shares, Pace& pace) {
  torch::NoGradGuard no_grad;
  model.set_training(false);
  const auto parts = balance::apportion(int(samples.size()), shares);
  const int rank = communicator.rank();
  uint64_t next = uint64_t(std::accumulate(parts.begin(), parts.begin() + rank, int64_t{0}));
  const uint64_t end = next + uint64_t(parts[rank]);
  Sums mine;
  while (next < end) {
    std::vector<uint64_t> indices(std::min<uint64_t>(kBatch, end - next));
    std::iota(indices.begin(), indices.end(), next);
    next += indices.size();
    pace.start();
    const Batch batch = samples.gather(indices, torch::kFloat);
    const auto loss = loss_sum(spec.loss, model.forward(batch.input), batch.target, padding, true);
    mine.loss += loss.sum.item<double>();
    mine.weight += loss.weight;
    mine.correct += double(loss.correct);
    pace.stop();
  }
  model.set_training(true);

  std::vector<Sums> all(communicator.size());
  REMUDA_TRY(communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                                     label::kEvaluation));
  Sums total;
  for (const auto& sums : all) {
    total.loss += sums.loss;
    total.weight += sums.weight;
    total.correct += sums.correct;
  }
  return Evaluation{total.loss / total.weight, total.correct / total.weight};
}

Result<void> average_buffers(comm::Communicator& communicator, Model& model, double weight) {
  torch::NoGradGuard no_grad;
  auto buffers = model.buffers();
  if (buffers.empty()) return {};
  std::vector<double> weights(communicator.size());
  REMUDA_TRY(communicator.all_gather(std::as_bytes(std::span(&weight, 1)), std::as_writable_bytes(std::span(weights)),
                                     label::kBufferWeights));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (auto& buffer : buffers) {
    auto mine = buffer.contiguous();
    if (!buffer.is_floating_point()) {
      REMUDA_TRY(communicator.broadcast(bytes_of(mine), 0, label::kBuffers));
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
