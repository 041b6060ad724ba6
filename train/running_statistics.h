// RunningStatistics: the running statistics of a model's batch norms, over all ranks of a run and over the end of a
// step that does not count.
//
// Where ranks compute equal micro-batches, each normalised by itself, one device would count these one after the
// other, in the order of the samples: first those of rank 0, then those of rank 1, and so on. Statistics are linear in
// what batches give them, r <- (1 - m) r + m s, so they need not be counted in that order: each rank counts its own
// from where all began, and what it has made of them goes into one sum with the weight of its place.
//
//   r = (1 - m)^K r0 + sum over ranks i of (1 - m)^(K of the ranks after i) (r_i - (1 - m)^(K_i) r0)
//
// r0: at the beginning of the step, the same on all ranks; r_i: of rank i after its K_i batches; K: of all. Without a
// momentum all batches ever counted weigh the same, and so do here those of a step: n0 before, K_i of each rank.
//
// One thread, between steps.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/model/model.h"

namespace remuda::train {

/// What the statistics of one device are made of: so many times those before, and so many times those of each rank.
struct OrderedWeights {
  double before = 0;
  std::vector<double> ranks;
};
/// `counted`: batches of each rank, in their order; `batches_before`: those before, where there is no momentum.
OrderedWeights weights_in_order(std::optional<double> momentum, int64_t batches_before,
                                std::span<const int64_t> counted);

class RunningStatistics {
 public:
  /// Those of a model, which outlives it. What it needs of the device's memory is taken here.
  explicit RunningStatistics(std::vector<NormStatistics> norms);

  /// A step begins.
  void keep();
  /// They are again as at keep(), as a step that is dropped gives them nothing.
  void restore() const;
  /// Collective, after a step. `pieces`: what each rank has computed, which is what norms have counted that have no
  /// counter, or one that stands still (PyTorch's instance norms). Afterwards all ranks have the statistics of one
  /// device, if they had the same at keep(). Those whose momentum is not known stay as they are.
  Result<void> join(comm::Communicator& communicator, const std::vector<int>& pieces);
  /// Collective: whether all ranks have the same, as join() needs them at keep().
  Result<bool> are_the_same(comm::Communicator& communicator);
  /// What join() makes the same on all ranks.
  std::vector<torch::Tensor> joined() const;

 private:
  struct Values {
    torch::Tensor statistics;  ///< of all norms, mean and variance, one after the other
    torch::Tensor batches;     ///< of those that have a counter
  };
  void read(Values& into) const;
  void write(const Values& values) const;

  std::vector<NormStatistics> norms_;  ///< first those whose momentum is known
  size_t known_ = 0;
  Values kept_, now_;  ///< memory of the device that is taken once
};

}  // namespace remuda::train
