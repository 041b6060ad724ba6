// GradientReducer: data parallel over any number of ranks with any split of the batch between them.
//
// Each rank runs backward() on the *sum* of its losses. The gradients of all ranks are added up in buckets, in one
// agreed order, on a separate thread while backward still runs; the weights (loss units) are added up with them, and
// the total gradient is divided by the total weight. So the result is the gradient of the mean loss over the global
// batch, however it is split: 3 samples here and 61 there, or none at all.
//
//   reducer->begin(weight, loss_sum_value);
//   loss_sum.backward();                       // full buckets leave while this runs
//   auto step = reducer->finish();             // every parameter's grad is now the global one
//   if (step && step->stands) optimizer.step();
//
// One backward() per step: gradients that become ready twice between begin() and finish(), or that are reset or
// replaced in between (zero_grad() with set_to_none), would be sent incomplete. finish() detects both, on any rank, and
// returns an error on all of them.
//
// One thread at a time. All ranks call the same functions in the same order; create() refuses ranks whose models differ
// in shapes or types.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/flat_parameters.h"
#include "train/step_tail.h"
#include "train/work_queue.h"

namespace remuda::train {

struct ReducerOptions {
  double bucket_bytes = 4 << 20;
  /// Called on the backward thread before a bucket is sent; a device that simulates a slower one sleeps here.
  std::function<void()> before_launch = [] {};
};

/// The result of a step over all ranks. The same on every rank.
struct ReducedStep {
  StepTail totals;
  bool finite = true;  ///< neither the loss nor any gradient is infinite or NaN
  bool stands = true;  ///< gradients hold sum / weight; false: not finite, a rank failed, or nothing counted
};

class GradientReducer {
 public:
  /// Collective. Learns the order in which gradients become ready from one `trial_backward` (rank 0's order holds for
  /// all), lays the parameters out flat in that order, and gives all ranks rank 0's values.
  static Result<std::unique_ptr<GradientReducer>> create(comm::Communicator& communicator,
                                                         std::vector<torch::Tensor> parameters,
                                                         const std::function<void()>& trial_backward,
                                                         ReducerOptions options = {});

  FlatParameters& flat() { return flat_; }
  size_t buckets() const { return bucket_ends_.size(); }

  /// Zeroes the gradients and arms the buckets. `tail` is what this rank reports: weight, loss sum, its own slots.
  void begin(StepTail tail);
  /// To be called when this rank's part of the step failed (at any moment since begin()): gradients not sent yet are
  /// sent as zeros.
  void give_up(StepStatus why);
  /// Adds to this rank's report of the step; from begin() until finish().
  void add_status(StepStatus bit) { tail_.status[communicator_.rank()] |= bit; }
  /// Sends the remaining buckets, waits for all ranks, divides by the total weight.
  Result<ReducedStep> finish();
  /// Seconds the last finish() was blocked, waiting for other ranks and for buckets being sent.
  double wait_s() const { return wait_s_; }

  /// Collective: compares all ranks' parameters bit by bit (a 64-bit hash of them). The error names two ranks that
  /// differ and the kernels of both: ranks stay equal only as long as their kernels round in the same way.
  Result<void> check_parameters(int step);

  /// Detaches the hooks: gradients stay where they are, and are not sent any more.
  ~GradientReducer();

 private:
  GradientReducer(comm::Communicator& communicator, std::vector<torch::Tensor> parameters, torch::Tensor arena,
                  ReducerOptions options);
  void cut_buckets();
  void add_hooks();
  void on_ready(size_t parameter);
  void launch_next();
  void write_tail();
  StepTail read_tail() const;

  comm::Communicator& communicator_;
  ReducerOptions options_;
  torch::Tensor arena_;  ///< all gradients, then the tail
  FlatParameters flat_;
  std::vector<int64_t> bucket_ends_;  ///< in elements of the arena; the last one includes the tail
  std::vector<size_t> bucket_of_;     ///< of each parameter
  std::vector<int> bucket_size_;      ///< parameters in each bucket
  std::vector<int> bucket_missing_;   ///< parameters not ready yet in this step
  std::vector<bool> ready_;           ///< of each parameter, in this step
  size_t next_bucket_ = 0;
  bool armed_ = false;
  StepTail tail_;
  double wait_s_ = 0;
  std::shared_ptr<GradientReducer*> self_;  ///< what the hooks hold; set to null when this object is destroyed
  std::vector<GradAccumulator> accumulators_;
  WorkQueue queue_;
};

}  // namespace remuda::train
