// Evaluation on held-out data, split over the ranks by their shares.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/loss.h"
#include "train/model/model.h"
#include "train/pace.h"
#include "train/samples.h"

namespace remuda::train {

struct Evaluation {
  double loss = 0;      ///< mean over loss units
  double accuracy = 0;  ///< fraction of loss units predicted right
};

/// How the ranks evaluate the held-out samples.
struct EvaluationPlan {
  const job::ModelSpec& spec;
  int padding = -1;
  std::span<const int> shares;  ///< of a batch, per rank: at most what each can train on, so that they fit in memory
  torch::Device device = torch::kCPU;  ///< where the model is
  torch::ScalarType compute_type = torch::kFloat;
  std::function<bool()> leave = [] { return false; };  ///< whether the run was asked to stop
  int workers = 0;                                     ///< threads that read samples ahead
  data::BatchMemory memory = data::plain_memory;
  int most = std::numeric_limits<int>::max();  ///< samples that go through the model of this rank at a time
  /// Collective, where passes of the model are: called before ranks meet, for the passes that others still make.
  std::function<Result<void>()> finish_passes = [] { return Result<void>(); };
  /// Called each time that this rank runs out of memory: from then on it takes so many samples at a time.
  std::function<void(int most)> goes_on_with = [](int) {};
};

/// Collective. The same result on every rank; it depends on the split only by rounding. A rank that runs out of memory
/// goes on with smaller batches. Nothing when a rank was asked to stop before the end.
Result<std::optional<Evaluation>> evaluate(comm::Communicator& communicator, Model& model, const Samples& samples,
                                           const EvaluationPlan& plan, Pace& pace);

/// Collective. Batch norm's running statistics are each rank's own: replaces them by their mean, weighted by the
/// samples each rank has seen (`weight`). Integer buffers become rank 0's. Nothing changes when no rank has seen any.
Result<void> average_buffers(comm::Communicator& communicator, const std::vector<torch::Tensor>& buffers,
                             double weight);
inline Result<void> average_buffers(comm::Communicator& communicator, Model& model, double weight) {
  return average_buffers(communicator, model.buffers(), weight);
}

}  // namespace remuda::train
