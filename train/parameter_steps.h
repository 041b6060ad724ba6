// ParameterSteps: how many steps each parameter has made.
//
// A parameter that no rank's loss depends on has no gradient in that step. PyTorch's optimizers pass over those whose
// grad is None, and so does every optimizer here: its values do not decay, its state stays as it is, and its own count
// of steps, by which AdamW corrects its bias, does not grow. A gradient that is there and zero is another matter.
// Ranks agree on it in the reports of a step (StepTotals::used): what one of them has used, all have. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "train/flat_layout.h"

namespace remuda::train {

class ParameterSteps {
 public:
  /// The layout outlives it.
  explicit ParameterSteps(const FlatLayout& layout);

  /// One more step, of those parameters that were `used`, in the order of the layout; empty: of all.
  void begin(const std::vector<char>& used = {});
  /// Of the run: as many as were begun.
  int64_t steps() const { return steps_; }
  /// Of these, how many each parameter has not made.
  const std::vector<int64_t>& missed() const { return missed_; }
  int64_t of(size_t parameter) const { return steps_ - missed_[parameter]; }
  void set_steps(int64_t steps) { steps_ = steps; }
  void set_missed(std::vector<int64_t> missed) { missed_ = std::move(missed); }

  /// A range of the flat tensors that one rank owns, of one group, and of parameters that have made as many steps.
  struct Run : Piece {
    int64_t step = 0;  ///< the number of the one that has begun, counted from 1; 0: it is not theirs
  };
  /// What a rank owns of a bucket, for the step that has begun.
  std::vector<Run> runs(size_t bucket, int rank) const;
  /// Of all ranks: what makes no step in the one that has begun.
  std::vector<comm::Chunk> idle() const;

 private:
  const FlatLayout* layout_;
  int64_t steps_ = 0;
  std::vector<int64_t> missed_;
  std::vector<char> used_;  ///< in the step that has begun
};

}  // namespace remuda::train
