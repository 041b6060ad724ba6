// GradientReducer: adds the gradients of all ranks up while backward() still runs.
//
// Gradients are added up in buckets, in one agreed order, on a separate thread. Of each bucket a rank gets the sum only
// of the part it owns (see FlatLayout); what decides about the step, the total weight and norm among it, all ranks
// learn in one small round at the end. Hooks never wait: they mark a moment in the device's work and hand the bucket
// over. Where a model's blocks are sharded (ShardedBlocks), they go first, and all other buckets after backward().
//
// One backward() per step, after any number of them between accumulate() and begin(): gradients that become ready twice
// between begin() and finish(), or that are reset or replaced in between (zero_grad() with set_to_none), would be sent
// incomplete. finish() detects both, on any rank, and returns an error on all of them.
//
// One thread at a time, except that hooks run on whatever thread backward() uses.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "train/engine.h"
#include "train/step_report.h"

namespace remuda::train {

class GradientReducer {
 public:
  /// `times`: how often each parameter becomes ready in a step, in their order.
  GradientReducer(Engine& engine, std::vector<int64_t> times);
  /// From now on it is noted, too, which parameters of sharded blocks get gradients.
  void note_blocks();
  /// Detaches the hooks: gradients stay where they are, and are not sent any more.
  ~GradientReducer();

  /// Zeroes the gradients, once for each step: backward passes from here to begin() add to them and send nothing.
  void accumulate();
  /// Arms the buckets; zeroes the gradients first, except after accumulate(). Gradients will be `loss_scale` times too
  /// large.
  void begin(StepReport report, double loss_scale = 1);
  /// What this rank reports; from begin() until finish().
  StepReport& report() { return report_; }
  /// Whether any gradient has become ready since begin(). Which ones have since the step began, with accumulate() or
  /// begin(), is part of the report.
  bool any_ready() const { return any_ready_; }
  /// To be called when this rank's part of the step failed (at any moment since begin()): what it has not sent yet is
  /// sent as it is, since nobody will use it.
  void give_up(StepStatus why);
  /// Sends the remaining buckets and waits for all ranks.
  Result<StepTotals> finish();
  /// Seconds the last finish() was blocked, waiting for other ranks and for buckets being sent.
  double wait_s() const { return wait_s_; }

 private:
  void add_hook(size_t parameter, std::function<void()> on_gradient);
  void start_step();
  void on_ready(size_t parameter);
  void launch_next();

  Engine& engine_;
  std::vector<int> bucket_size_;     ///< parameters in each bucket
  std::vector<int> bucket_missing_;  ///< parameters not ready yet in this step
  const std::vector<int64_t> times_;
  std::vector<int64_t> times_left_;  ///< of each parameter, in this step
  size_t next_bucket_ = 0;
  std::vector<char> used_;  ///< parameters that have got a gradient in this step
  bool armed_ = false, accumulating_ = false, any_ready_ = false;
  double loss_scale_ = 1;
  StepReport report_;
  double wait_s_ = 0;
  std::shared_ptr<GradientReducer*> self_;  ///< what the hooks hold; set to null when this object is destroyed
  std::vector<GradAccumulator> accumulators_;
};

}  // namespace remuda::train
