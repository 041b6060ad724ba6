// ShardedOptimizer: each rank updates the part of the parameters it owns, and sends it to all.
//
// So the parameters of all ranks are the same bits whatever their devices and kernels, and the state of the optimizer
// is divided among them (balance/split.h). An update is one of `update_rule.h`.
//
// Where values are rounded when they are sent (FlatParameters::rounds()), an owner keeps its part unrounded as well,
// and updates that: steps too small for the shorter type add up (Micikevicius et al. 2018, arXiv:1710.03740, "master
// weights"). All ranks, owners too, then compute with the rounded values.
//
// The parts of blocks that are sharded are updated where ShardedParts has them, and are not sent: the next pass fetches
// them.
//
// Where a device has no room for them, owners keep state and unrounded values in memory of the host and update there
// (UpdatesOn::host): sums of gradients and new values pass through it anyway (Ren et al. 2021, arXiv:2101.06840,
// "ZeRO-Offload"). Each rank decides that for itself.
//
// All memory of the device that an update needs is taken at the start: a step that its gradients have survived is not
// lost for want of memory, nor half done.
#pragma once

#include <vector>

#include "train/gradient_reducer.h"
#include "train/owned_state.h"
#include "train/update_rule.h"

namespace remuda::train {

class ShardedOptimizer final : public OwnedState {
 public:
  struct Options {
    UpdateRule rule;
    double average = 0;  ///< above 0: keeps the average of the weights too; the part of it that each step keeps
    UpdatesOn updates_on = UpdatesOn::device;  ///< as the engine's exchange has it
  };

  ShardedOptimizer(Engine& engine, const Options& options);

  /// Collective. One step with the gradient that the reducer has added up, times `gradient_factor`; `settings` has an
  /// element per group; `used`: StepTotals::used, see ParameterSteps. Afterwards all ranks have the same parameters.
  Result<void> step(double gradient_factor, const std::vector<GroupSettings>& settings, const std::vector<char>& used);

  /// The same, but returns once this rank has updated what it owns: parameters arrive bucket by bucket, first the one
  /// that was the last to get its gradients. The engine's queue makes no other calls until arrive(), except for the
  /// gradients of the next step. Not where devices send each other the parameters themselves.
  Result<void> start_step(double gradient_factor, const std::vector<GroupSettings>& settings,
                          const std::vector<char>& used);
  /// Whether a bucket is there, or take() would not wait for other ranks.
  bool is_there(size_t bucket) const;
  /// Waits until what this thread computes next may read a bucket; where others are lost, it is not the right one.
  void take(size_t bucket);
  /// Waits for all that are under way.
  Result<void> arrive();
  bool is_arriving() const { return is_arriving_; }

  /// The same work without the other ranks, to measure how long it takes; done when it returns. Parameters are no
  /// longer the same on all ranks.
  Result<void> step_alone(double gradient_factor, const std::vector<GroupSettings>& settings);

  /// Forgets all steps; the values stay as they are.
  void reset();

  /// Collective, between two steps, with no parameters under way: from now on ranks own parts of everything in
  /// proportion to these shares; what old owners have kept goes to the new ones. False, and nothing has changed, where
  /// a rank has no memory for both. Not where blocks are sharded.
  Result<bool> divide(std::span<const double> state_shares);

  /// Collective. Exchanges the parameters for their average; once more, back. The average begins with the parameters at
  /// the first step.
  Result<void> swap_average();

  /// Collective. Gives all ranks what owners have now, as steps do.
  Result<void> send_all();
  /// Collective. Gives all ranks the values that owners keep unrounded, until the next step.
  Result<void> send_unrounded();

  Result<void> settle() override { return {}; }
  std::vector<Owned> owned() override;
  const ParameterSteps& counts() const override { return counts_; }
  void set_missed(std::vector<int64_t> missed) override { counts_.set_missed(std::move(missed)); }
  /// After none, all get the values unrounded, as they begin.
  Result<void> resume(int64_t steps) override;

  /// Seconds the last step() waited for the others.
  double wait_s() const { return wait_s_; }

  size_t state_bytes() const override;
  bool is_on_host() const override { return options_.updates_on == UpdatesOn::host; }

 private:
  /// Of a piece's group: what to update in one go, and where its average lies.
  struct Batch : UpdateRanges {
    std::vector<torch::Tensor> averages;
    size_t count = 0;  ///< values
  };
  /// Of a bucket that was sent.
  struct Arrival {
    uint64_t work = 0;  ///< of the queue
    Moment there;       ///< on the device, once that work is done
    bool is_taken = true;
  };
  /// Of its own, by bucket.
  struct Kept {
    std::vector<size_t> begin;  ///< of each bucket: where this rank's part lies in the tensors
    std::vector<torch::Tensor> states;
    torch::Tensor average;    ///< undefined unless options_.average > 0
    torch::Tensor unrounded;  ///< what this rank owns of whole parameters, taken over at the first step; undefined
                              ///< where the device has it
    torch::Tensor scratch;    ///< for at_once() values; undefined where nothing needs it
  };
  Kept room_for(const FlatLayout& layout) const;
  Result<void> move_to(const Kept& kept, const FlatLayout& layout);
  Result<void> free_host() const;
  Result<void> update_and_send(double gradient_factor, const std::vector<GroupSettings>& settings,
                               const std::vector<char>& used);
  void update_own(comm::Chunk buckets, double gradient_factor, const std::vector<GroupSettings>& settings);
  void add(Batch& batch, size_t bucket, comm::Chunk range) const;
  size_t at_once() const;
  void apply(Batch batch, double gradient_factor, const GroupSettings& settings, int64_t step) const;
  torch::Tensor own_values(size_t bucket) const;
  torch::Tensor own_gradients(size_t bucket) const;
  bool is_block(size_t bucket) const { return bucket >= engine_.flat.layout().whole_buckets(); }
  bool is_on_cpu() const { return is_on_host() || engine_.ops.is_synchronous(); }
  /// What updates read and write of it.
  const torch::Tensor& here(const Mirror& mirror) const { return is_on_host() ? mirror.host() : mirror.device(); }
  void take_over();
  Result<void> send_owned();
  void begin_step(const std::vector<char>& used);
  void round_own(comm::Chunk buckets);
  void widen(comm::Chunk range);
  void send_rounded(comm::Chunk buckets);
  void send_to_all(comm::Chunk buckets, Mirror& values);
  Result<void> arrive(Mirror& values);

  Engine& engine_;
  const Options options_;
  const int rank_;
  Kept kept_;
  std::vector<Arrival> arrivals_;  ///< of each bucket of whole parameters
  bool is_arriving_ = false;
  ParameterSteps counts_;
  double wait_s_ = 0;
};

}  // namespace remuda::train
