// Evaluation on held-out data, split over the ranks by their shares.
#pragma once

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

/// Collective. The same result on every rank; it depends on the split only by rounding.
Result<Evaluation> evaluate(comm::Communicator& communicator, Model& model, const Samples& samples,
                            const job::ModelSpec& spec, int padding, std::span<const int> shares, Pace& pace);

/// Collective. Batch norm's running statistics are each rank's own: replaces them by their mean, weighted by the
/// samples each rank has seen (`weight`). Integer buffers become rank 0's.
Result<void> average_buffers(comm::Communicator& communicator, Model& model, double weight);

}  // namespace remuda::train
