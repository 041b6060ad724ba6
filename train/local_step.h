// LocalStep: one rank's own part of a step: gather its samples, forward, loss, backward, at its device's pace.
#pragma once

#include <optional>
#include <span>

#include "train/failed_backward.h"
#include "train/gradient_reducer.h"
#include "train/loss.h"
#include "train/model/model.h"
#include "train/pace.h"
#include "train/samples.h"

namespace remuda::train {

/// To be made on the thread that runs it, before that thread's first forward pass.
class LocalStep {
 public:
  LocalStep(Model& model, const Samples& samples, const job::ModelSpec& spec, int padding, Pace& pace)
      : model_(model), samples_(samples), loss_(spec.loss), padding_(padding), pace_(pace) {}

  /// Forward and backward for `indices`, the gradients going through `reducer` with what `tail` says of this rank. A
  /// rank that runs out of memory gives the step up, and says so in the tail. Gives the seconds of compute.
  double run(std::span<const uint64_t> indices, StepTail tail, GradientReducer& reducer);

  /// Forward and backward with nobody else; false when it runs out of memory.
  bool run_alone(std::span<const uint64_t> indices);

 private:
  LossSum forward(std::span<const uint64_t> indices);

  Model& model_;
  const Samples& samples_;
  job::Loss loss_;
  int padding_;
  Pace& pace_;
  FailedBackward failed_;
};

}  // namespace remuda::train
