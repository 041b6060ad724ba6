// LocalStep: one rank's own part of a step: forward, loss and backward of its samples, at its device's pace.
#pragma once

#include <optional>
#include <span>

#include "train/data_parallel.h"
#include "train/device/host_room.h"
#include "train/loss.h"
#include "train/model/activation_spill.h"
#include "train/model/model.h"
#include "train/pace.h"
#include "train/precision.h"
#include "train/samples.h"

namespace remuda::train {

/// Frees what a backward pass that threw leaves in memory.
///
/// When backward() throws, libtorch keeps the nodes that were ready but had not run in a queue of the calling thread,
/// and with them the graph and all it saved: after running out of memory in one branch of a network, most of that
/// memory would stay in use. The queue is processed from its newest node to its oldest, so a backward pass through a
/// node that is older than all others removes the rest. To be made before any graph, and used, on the thread that runs
/// backward().
class FailedBackward {
 public:
  /// Frees what failed passes left, without allocating memory.
  void clear() { torch::autograd::grad({oldest_}, {leaf_}, {one_}, /*retain_graph=*/true); }

 private:
  torch::Tensor one_ = torch::ones({});
  torch::Tensor leaf_ = torch::ones({}, torch::requires_grad());
  torch::Tensor oldest_ = leaf_.clone();
};

/// To be made on the thread that runs it, before that thread's first forward pass.
class LocalStep {
 public:
  struct Options {
    job::Loss loss = job::Loss::cross_entropy;
    int padding = -1;
    torch::ScalarType compute_type = torch::kFloat;
    size_t pieces = 1;        ///< one after another, whose gradients add up: so many times less memory for activations
    int64_t micro_batch = 0;  ///< samples of each piece, of which the last may have fewer; 0: `pieces` even ones
    NormExchange* norms = nullptr;  ///< of the model, where its batch norms normalise the samples of all ranks
    bool one_wait = false;    ///< for the device at the end of a step, which brings the losses of all pieces along
    double timeout_s = 3600;  ///< longest wait for the device; other ranks give up sooner or later too
  };

  /// The model's parameters lie on the device of `ops`. All of these outlive it.
  LocalStep(Model& model, const DeviceOps& ops, Pace& pace, const Options& options)
      : model_(model), ops_(ops), pace_(pace), options_(options), pieces_(options.pieces) {}

  /// Checks that the model accepts a sample, `one`, and returns scores of at least `classes` that fit its loss; the
  /// error says what `name`, the model, returns and what it must return. One forward pass that changes nothing.
  Result<void> check_model(const std::string& name, const Batch& one, int classes);

  /// Why the model cannot train on so few samples at a time; empty where it can. PyTorch's BatchNorm1d refuses a single
  /// one, and torch.batch_norm makes NaN of its statistics. A forward pass, which moves its buffers.
  std::string why_too_few(const Batch& few);
  /// From now on no piece of a batch that has as many has fewer samples.
  void set_least(int samples) { least_ = samples; }

  /// Forward and backward for a batch, which may be empty, in pieces; the gradients go through `parallel`, with
  /// `report` as this rank's. A rank that runs out of memory gives up the step, and reports that. backward() runs on
  /// the loss times `loss_scale`. Returns the seconds of compute.
  double run(const Batch& batch, StepReport report, DataParallel& parallel, double loss_scale = 1);

  /// From now on, where there are no micro-batches; see Options.
  void set_pieces(size_t pieces) { pieces_ = pieces; }
  /// Samples that the largest piece of a batch has.
  int64_t largest_piece(const Batch& batch) const;

  /// From now on activations lie in memory of the host until backward() needs them.
  void spill_activations() { spill_.emplace(ops_); }
  /// Null where they do not.
  ActivationSpill* spill() { return spill_ ? &*spill_ : nullptr; }

  /// Forward and backward without other ranks; false when it runs out of memory.
  bool run_alone(const Batch& batch);

 private:
  int64_t pieces_in(const Batch& batch) const;
  std::vector<Batch> pieces_of(const Batch& batch) const;
  LossSum forward(const Batch& batch);
  std::vector<torch::Tensor> parameters_and_buffers();
  void wait_for(const Moment& moment);
  double wait_for_losses(const std::vector<torch::Tensor>& sums);

  Model& model_;
  const DeviceOps& ops_;
  Pace& pace_;
  const Options options_;
  size_t pieces_;
  int least_ = 1;
  std::optional<ActivationSpill> spill_;  ///< before what may hold a graph
  FailedBackward failed_;
  std::optional<HostRoom> loss_;  ///< one value, where there is one wait only
  std::vector<Batch> on_host_;    ///< of the last step, which the device may still be copying
};

}  // namespace remuda::train
