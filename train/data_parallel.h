// DataParallel: trains one model on any number of ranks, with any split of the batch between them.
//
// Each rank runs backward() on the *sum* of its losses. The gradients of all ranks are added up, and with them the
// weights (loss units); the total gradient is divided by the total weight. So the result is the gradient of the mean
// loss over the global batch, however it is split: 3 samples here and 61 there, or none at all. Each part of the
// parameters has one owner, which updates it and sends it to all: the parameters stay the same bits on all ranks,
// whatever their devices.
//
//   parallel->begin(report);                   // report: this rank's weight
//   loss_sum.backward();                       // full buckets leave while this runs
//   auto step = parallel->reduce();            // what all ranks know of the step
//   if (step && step->stands) parallel->update(*step, settings);
//
// With start_update() in place of update(), parameters arrive while the next forward pass runs, under a ParameterWatch.
//
// One thread at a time. All ranks call the same functions in the same order; create() refuses ranks whose models differ
// in shapes or types. See GradientReducer for what must not happen between begin() and reduce().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "balance/split.h"
#include "base/result.h"
#include "comm/communicator.h"
#include "train/compressed_optimizer.h"
#include "train/gradient_reducer.h"
#include "train/norm_exchange.h"
#include "train/parameter_watch.h"
#include "train/sharded_blocks.h"
#include "train/sharded_optimizer.h"

namespace remuda::train {

struct ParallelOptions {
  double bucket_bytes = 4 << 20;
  UpdateRule rule;
  std::vector<size_t> group_of;    ///< of each parameter: the number of its group; empty: all are of group 0
  std::vector<std::string> names;  ///< of each parameter, for errors; empty: they are told by their places
  double clip_norm = 0;            ///< the largest norm of the gradient; a longer one is shortened to it. 0: no limit
  double average = 0;              ///< see ShardedOptimizer::Options
  /// Where this rank keeps state and values that it owns unrounded, and updates; on a CPU, both are the same.
  UpdatesOn updates_on = UpdatesOn::device;
  std::vector<double> state_shares;  ///< one weight per rank; empty: by their roles and the memory of their devices
  std::vector<balance::Role> roles;  ///< of each rank, the same on all; empty: all compute
  /// By which buckets go from device to device, the same on all ranks, and idle; null: through memory of the host. It
  /// outlives the DataParallel.
  comm::DeviceCollectives* collectives = nullptr;
  bool equal_parts = false;  ///< where shares of the state are equal, parts of buckets are of one size
  int ranks_on_device = 1;   ///< of which this is one; each has an equal part of the device's memory
  /// The type in which owners send parameters, the same on all ranks; see FlatParameters. Not given: their own.
  std::optional<torch::ScalarType> sent_as;
  /// The same of gradients: bfloat16, or not given. Their sums are of their own type all the same.
  std::optional<torch::ScalarType> gradients_sent_as;
  /// Of each block of the model, the parameters that nothing else uses: they are sharded, and a rank holds them only
  /// while the block computes; see ShardedBlocks, and Model::watch_blocks(). Empty: all are whole on every rank. The
  /// same on all ranks; without `norms`, `collectives` and shorter types to send.
  std::vector<std::vector<torch::Tensor>> blocks;
  /// Whether the host waits for its device's update before it waits for other ranks, so that its time is known.
  bool waits_for_updates = true;
  WaitHooks pass_waits;           ///< for blocks and for parameters, in the middle of a pass
  NormExchange* norms = nullptr;  ///< of batch norms that normalise the samples of all ranks, where the model has such
  /// Called before gradients or parameters are sent, by the thread that has computed them; a device that simulates a
  /// slower one sleeps there.
  std::function<void()> before_send = [] {};
  /// Called in update(), when this rank has computed its part and begins to wait for the others.
  std::function<void()> before_wait = [] {};
};

/// The result of a step over all ranks. The same on every rank.
struct ReducedStep {
  StepTotals totals;
  bool finite = true;  ///< neither the loss nor any gradient is infinite or NaN
  bool stands = true;  ///< false: not finite, a rank failed, or nothing counted: nobody may update
  double norm = 0;     ///< of the gradient of the mean loss, before it is clipped; NaN once compress() was called
  double gradient_factor = 0;  ///< the summed gradient times this is the one to use: divided by the weight, and clipped
};

class DataParallel {
 public:
  /// Collective. Learns the order in which gradients become ready from one `trial_backward` (rank 0's order holds for
  /// all), lays the parameters out flat in that order, and gives all ranks rank 0's values. The communicator and `ops`
  /// outlive it. Where blocks are sharded there is no trial: none of them has the whole model. `parameters` may be on
  /// the host then, and are on the device afterwards.
  static Result<std::unique_ptr<DataParallel>> create(comm::Communicator& communicator, const DeviceOps& ops,
                                                      std::vector<torch::Tensor> parameters,
                                                      const std::function<void()>& trial_backward,
                                                      ParallelOptions options = {});

  const FlatParameters& flat() const { return flat_; }
  /// What ranks hold of parameters and state.
  const balance::StateBytes& state_needs() const { return state_needs_; }
  const DeviceOps& ops() const { return ops_; }

  /// Collective in effect. Before a step's first pass, the same on all ranks: those that have no samples in it, and run
  /// no backward(). Empty: none.
  Result<void> set_silent(const std::vector<bool>& ranks);
  /// Whether one rank computes and owns everything from now on, so that nothing is sent.
  bool is_of_one() const { return engine_.sums == by_one_.get(); }
  /// Before a backward() that is not the last of the step; see GradientReducer.
  void accumulate() { reducer_->accumulate(); }
  /// `loss_scale`: what backward() will run on is the loss times it; the gradients are divided by it before they leave.
  void begin(StepReport report, double loss_scale = 1) { reducer_->begin(std::move(report), loss_scale); }
  StepReport& report() { return reducer_->report(); }
  bool any_ready() const { return reducer_->any_ready(); }
  /// Before the first pass of a step in which begin() gets it.
  void set_loss_scale(double loss_scale);
  /// Whether calls that passes make with other ranks have failed: reduce() returns why.
  bool has_failed() const { return blocks_ && !blocks_->outcome(); }
  /// For a forward pass after start_update(); null where all parameters are there.
  std::unique_ptr<ParameterWatch> watch_parameters();
  void give_up(StepStatus why) { reducer_->give_up(why); }
  /// Collective. Sends the remaining buckets, waits for all ranks.
  Result<ReducedStep> reduce();
  /// Collective. Only for a step that stands. `settings`: one element per parameter group.
  Result<void> update(const ReducedStep& step, const std::vector<GroupSettings>& settings);

  /// Collective. The same, but returns once this rank has updated what it owns. Until the next reduce() or arrive() the
  /// parameters are read under watch_parameters() only, and no other collective call is made: those of this class make
  /// arrive() first. Where one rank computes and owns everything, the others get no parameters before arrive(), however
  /// many steps are made until then. Not with compress() and `blocks`, nor, but for that one, with `collectives`.
  Result<void> start_update(const ReducedStep& step, const std::vector<GroupSettings>& settings);
  /// Collective. From now on all ranks have the parameters: waits for those that are under way, or sends them.
  Result<void> arrive();

  /// Collective, between two steps, once. From now on hosts send each other matrices of that rank; or one bit per
  /// parameter where it is 0, which is for AdamW without clip_norm and average only. See CompressedOptimizer. Without
  /// collectives of devices.
  Result<void> compress(size_t rank = 0);
  bool is_compressed() const { return compressed_ != nullptr; }
  /// Collective, between two steps. From now on gradients are sent in this type, as with gradients_sent_as.
  Result<void> send_gradients_as(torch::ScalarType type);
  /// What this rank has sent of gradients, parameters and reports, over connections; without parameters that are under
  /// way.
  uint64_t sent_bytes() const;

  /// Collective. Exchanges the parameters for their average (see ParallelOptions); once more, back.
  Result<void> swap_average();
  /// Collective. Gives all ranks the parameters as their owners keep them (see ParallelOptions::sent_as), until the
  /// next step: to be called before they are kept.
  Result<void> send_unrounded();

  /// Whether parts may have other owners: not once compress() was called, nor where blocks are sharded.
  bool may_divide() const { return optimizer_ && !blocks_; }
  /// Collective, between two steps, where they may. See ShardedOptimizer::divide().
  Result<bool> divide(std::span<const double> state_shares);

  /// Seconds the last reduce() or update() was blocked, waiting for other ranks and for buckets being sent.
  double wait_s() const { return wait_s_; }
  /// The longest wait for another rank or for the device from now on. The same on all ranks.
  void set_timeout(double seconds);

  void zero_gradient() { flat_.zero_gradient(); }
  /// Not once compress() was called.
  ShardedOptimizer& optimizer();
  OwnedState& state();
  ShardedBlocks* blocks() { return blocks_.get(); }  ///< null where all parameters are whole
  /// Where this rank holds the values that it owns: all that ShardedOptimizer::step_alone() changes.
  std::vector<torch::Tensor> own_values() const;
  /// Collective in effect: the other ranks are in ShardedBlocks::lend(). The values of a parameter, on the host where
  /// it is of a block; until the next call.
  Result<torch::Tensor> borrow(const torch::Tensor& parameter);
  /// What this rank holds between steps, where it updates: of parameters, and of gradients.
  size_t parameter_bytes() const;
  size_t gradient_bytes() const;
  /// In memory of the communicator: what libtorch's allocators do not count.
  size_t shared_bytes() const;

  /// The parameters of this rank, in memory of the host, once the device has computed them.
  Result<std::span<std::byte>> values_on_host();
  /// Collective: rank 0's parameters go to all.
  Result<void> share_values();
  /// Collective: compares all ranks' parameters bit by bit. The error names two ranks that differ.
  Result<void> check_parameters(int step);

 private:
  DataParallel(comm::Communicator& communicator, const DeviceOps& ops, FlatParameters flat, std::vector<int64_t> times,
               ParallelOptions options);
  Result<void> shard(const std::vector<std::vector<torch::Tensor>>& blocks, UpdatesOn updates_on);
  bool is_arriving() const { return optimizer_ && optimizer_->is_arriving(); }
  Result<void> choose_exchange();

  comm::Communicator& communicator_;
  const DeviceOps& ops_;
  FlatParameters flat_;
  NormExchange* const norms_;
  const UpdateRule rule_;
  const double clip_norm_, average_;
  const WaitHooks pass_waits_;
  std::unique_ptr<BucketExchange> exchange_, by_one_;  ///< between ranks, and where there is nothing to exchange
  Engine engine_;
  std::unique_ptr<ShardedParts> parts_;    ///< null where all parameters are whole
  std::unique_ptr<ShardedBlocks> blocks_;  ///< likewise
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<ShardedOptimizer> optimizer_;      ///< until compress()
  std::unique_ptr<CompressedOptimizer> compressed_;  ///< from then on
  balance::StateBytes state_needs_;
  std::vector<std::string> names_;  ///< of the parameters in flat()
  std::vector<bool> silent_;
  bool others_lag_ = false;  ///< the one rank that computes has made steps of which the others have no parameters
  double wait_s_ = 0;
  uint64_t sent_bytes_ = 0;  ///< before parameters were sent that are under way
  WorkQueue queue_;          ///< last: it ends before what its work uses
};

}  // namespace remuda::train
