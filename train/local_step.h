// LocalStep: one rank's own part of a step: gather its samples, forward, loss, backward, at its device's pace.
#pragma once

#include <optional>
#include <span>

#include "train/gradient_reducer.h"
#include "train/loss.h"
#include "train/model/model.h"
#include "train/pace.h"
#include "train/samples.h"

namespace remuda::train {

/// What a backward pass that threw leaves behind.
///
/// When backward() throws, libtorch keeps the nodes that were ready but had not run in a queue of the calling thread,
/// and with them the graph and all it saved: after running out of memory in one branch of a network, most of that
/// memory would stay taken. The queue is emptied from its newest node to its oldest, so a backward pass through a node
/// that is older than all others takes the remains out. To be made, and used, on the thread that runs backward(),
/// before any graph is.
class FailedBackward {
 public:
  /// Frees what failed passes left. Takes no memory for it.
  void clear() { torch::autograd::grad({oldest_}, {leaf_}, {one_}, /*retain_graph=*/true); }

 private:
  torch::Tensor one_ = torch::ones({});
  torch::Tensor leaf_ = torch::ones({}, torch::requires_grad());
  torch::Tensor oldest_ = leaf_.clone();
};

/// To be made on the thread that runs it, before that thread's first forward pass.
class LocalStep {
 public:
  LocalStep(Model& model, const Samples& samples, const job::ModelSpec& spec, int padding, Pace& pace)
      : model_(model), samples_(samples), loss_(spec.loss), padding_(padding), pace_(pace) {}

  /// Whether the model takes a sample and gives scores that its loss can be taken of; the error says what `name`, the
  /// model, gives and what it must give. One forward pass that changes nothing.
  Result<void> check_model(const std::string& name);

  /// Forward and backward for `indices`, the gradients going through `reducer` with what `tail` says of this rank. A
  /// rank that runs out of memory gives the step up, and says so in the tail. Gives the seconds of compute.
  double run(std::span<const uint64_t> indices, StepTail tail, GradientReducer& reducer);

  /// Forward and backward with no other rank; false when it runs out of memory.
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
