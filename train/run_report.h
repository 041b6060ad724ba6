// RunReport: the results of a run, as rank 0 reports them at the end. docs/run-report.md explains each field.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "balance/balancer.h"
#include "base/json.h"
#include "compress/choose.h"
#include "job/train_job.h"
#include "job/unwritten.h"
#include "train/checkpoint_report.h"
#include "train/evaluate.h"
#include "train/exchange_log.h"
#include "train/memory_plan.h"
#include "train/precision.h"
#include "train/weights.h"

namespace remuda::train {

/// The memory of one rank's device, in bytes; 0 where it is not known.
struct MemoryReport {
  double predicted_peak = 0;                            ///< of a training step, before there was one
  double peak = 0;                                      ///< in tensors, at most, during the steps
  double before = 0;                                    ///< of the peak: what was there when that step began
  double parameters = 0, gradients = 0, optimizer = 0;  ///< of what is there before a step
  double optimizer_on_host = 0;                         ///< in place of `optimizer`, in the host's memory
  double reserved_peak = 0;                             ///< what the allocator took of the device for them, at most
};

/// Of activations that lie in memory of the host until backward() needs them. All 0 where they do not.
struct SpillReport {
  double bytes_per_pass = 0;        ///< to the host, in a forward pass
  double predicted_s_per_pass = 0;  ///< of these copies and those back, by a trial before the first step
  double wait_s_per_pass = 0;       ///< that the device waited for copies; NaN where that is not known
};

/// Memory of the host that the driver of a rank's device refused to register: copies from and to it take a detour.
struct UnregisteredReport {
  double bytes = 0;             ///< in all
  std::array<char, 160> why{};  ///< what the driver said, up to the first 0
};

/// What a rank adds up of its own run.
struct OwnTotals {
  double samples = 0;      ///< trained on in all
  double compute_s = 0;    ///< in forward, backward and optimizer; a slowdown's sleep included
  double data_wait_s = 0;  ///< of compute_s: until the samples of a step were there
  double wait_s = 0;       ///< blocked, waiting for other devices
  double recompute_s = 0;  ///< of compute_s: what was computed again for want of memory: blocks (on a CPU), whole steps
  double oom_steps = 0;    ///< steps that were repeated as it ran out of memory, each time counted
  double oom_evaluations = 0;  ///< times it ran out of memory in evaluation
  MemoryReport memory;
  SpillReport spill;
  UnregisteredReport unregistered;
};

struct DeviceReport : OwnTotals {
  job::DeviceSpec device;
  torch::ScalarType precision = torch::kFloat;  ///< what it computed in
  std::vector<double> alone_measurements;  ///< samples/s while no other device works: before training, and after it
  balance::CostLine alone_part;            ///< of those before training: what a part of the batch took, without
  double alone_update_s = 0;               ///< the update of all parameters. 0: not known
  double share = 0;                        ///< of the global batch, at the end
  double state_share = 0;                  ///< of the parameters, those that it owns
  int pieces = 1;                          ///< in which it computed its part of a step, at the end
  MemoryNeed memory_need;                  ///< what a step takes of its memory

  double alone_samples_per_s() const;  ///< the mean of the measurements
};

/// Whether buckets went from device to device.
struct CollectivesReport {
  std::string library;      ///< by which; empty: they went through memory of the host
  std::string why_not;      ///< a sentence, then
  bool same_bits = false;   ///< whether sums are in the order that they have through memory of the host
  double bucket_bytes = 0;  ///< where their latency has decided that; else 0
};
Json to_json(const CollectivesReport& report);

/// Of train.compression, where the job asks for it.
struct CompressionReport {
  job::Compression kind = job::Compression::none;  ///< that of the job, or what automatic has chosen
  std::string chosen;                              ///< by which numbers it was chosen; empty: the job says so
  int after = 0;           ///< steps that were made before hosts packed what they sent each other; 0: none so far
  std::string why_not;     ///< why they never do; empty: they do, or will
  bool has_begun = false;  ///< or it was chosen that gradients go in bf16, or as they are
  std::optional<ExchangeCosts> before, since;  ///< of steps until then, and from then on, between hosts
  int chosen_after = 0;                        ///< steps, by automatic
  compress::Packing packing{};                 ///< what it has chosen
  std::vector<compress::Prediction> expected;  ///< by which it did; empty: it did not
};
Json to_json(const CompressionReport& report);

/// Of memory.parameters = "sharded": what it takes to fetch blocks from the other ranks.
struct ShardedReport {
  int blocks = 0;
  double largest_block_bytes = 0;
  double bytes_per_pass = 0;                        ///< that rank 0 gets from others, forward and backward
  double predicted_s_per_pass = 0, s_per_pass = 0;  ///< of a trial before the first step, and of the run
};
Json to_json(const ShardedReport& report);

/// Of devices with roles other than to compute: what these were predicted to gain, before the first step. Where some
/// have the role auto: what better ones would gain.
struct RoleReport {
  double step_s = 0;                    ///< with them
  double without_step_s = 0;            ///< if all devices computed; 0: then the batch would not fit
  std::vector<balance::Role> proposed;  ///< of each rank; empty: none
  std::string sentence;
};
Json to_json(const RoleReport& report);

/// A rank that was lost, and how the others went on.
struct RankLoss {
  int rank = 0;               ///< its number at the start of the run
  std::string device, cause;  ///< "killed by signal 9 (Killed)"
  int step = 0;               ///< so many were made by then
  int resumed_from = 0;       ///< the step after which the others went on: those up to `step` are repeated
  std::string state;   ///< where they had its state from: "memory", "checkpoint"; "start" where hardly a step was made;
                       ///< "none" where nothing had it, and the run was to stop anyway. Empty: not yet
  double seconds = 0;  ///< from its loss until they went on
};

/// A rank that joined the run, or was not taken in.
struct RankJoin {
  int rank = 0;  ///< its number, the next one after those of all ranks before
  std::string device;
  std::string failed;  ///< why it was not taken in; empty: it was
  int step = 0;        ///< so many were made by then
  double seconds = 0;  ///< from then until the run went on; 0: not yet
};

/// A rank that takes neither samples nor owns state at the end, as steps are shorter without it.
struct LeftOutRank {
  int rank = 0;
  std::string device;
  double with_samples_per_s = 0, without_samples_per_s = 0;  ///< of all devices, by what steps took
  bool was_tried = false;                                    ///< with it; else that is predicted
};

/// At the start of a run, while caches and allocator settle; nor are they profiled.
inline constexpr int kUntimedSteps = 3;

/// Training steps after the first few of a run, or of its ranks after others were lost. Evaluation is not timed.
struct TimedSteps {
  double samples = 0, seconds = 0;
  double ideal_samples = 0;  ///< that the devices at work would have made alone in these seconds
};

struct RunReport {
  std::vector<DeviceReport> devices;
  double timed_samples = 0, timed_s = 0;  ///< of TimedSteps, all
  TimedSteps before_loss;                 ///< of these, those with ranks that were lost since
  balance::BalancePolicy policy = balance::BalancePolicy::automatic;
  double communication_s = 0;  ///< of each step, what the rank that waited least has waited; added up
  std::string batch_norm;      ///< "local" or "synchronized" where the model has one; else empty
  int least_samples = 1;       ///< that the model takes at a time while it trains
  int micro_batch = 0;         ///< samples, where shares are whole numbers of it; else 0
  std::vector<balance::BalanceDecision> decisions;
  int share_changes = 0;
  int state_moves = 0;                ///< times that parts of the state got other owners after the first step
  std::vector<LeftOutRank> left_out;  ///< in rank order
  std::vector<double> loss_per_epoch;
  std::optional<Evaluation> test;  ///< after the last epoch
  int steps = 0;
  int skipped_steps = 0;  ///< not applied, because something was not finite
  CheckpointReport checkpoints;
  std::vector<RankLoss> lost_ranks;  ///< in the order of their loss
  std::vector<RankJoin> joined_ranks;
  int oom_steps = 0;        ///< repeated because a device ran out of memory; each time counts
  bool spills = false;      ///< activations, because memory.activations = "auto" found that it has to
  bool recomputes = false;  ///< blocks of the model, because memory.recompute = "auto" found that it has to
  double seconds = 0;       ///< from the first step to the end
  std::string transport;
  CollectivesReport collectives;
  std::optional<CompressionReport> compression;
  std::optional<RoleReport> roles;            ///< where there are such, and all devices were measured
  std::optional<ShardedReport> sharded;       ///< where blocks of the model are
  torch::ScalarType sent_as = torch::kFloat;  ///< the type in which owners sent parameters to the others
  torch::ScalarType gradients_sent_as = torch::kFloat;
  uint64_t seed = 0;
  bool stopped = false;                   ///< asked to stop before the end
  std::optional<WrittenWeights> weights;  ///< where the job asked for them, and there is what to write
  std::vector<job::Unwritten> unwritten;  ///< outputs that the job asked for, and that could not be written
  Json history;                           ///< of its steps, in a bounded number of points; see run_history.h
  Json profile;                           ///< of some steps, where the job asked for it, or null; see step_profile.h
  std::optional<std::string> sample;      ///< the text that was generated, where the job asked for it
  std::string sample_missing;             ///< why there is none, where the job asked for it

  /// A sentence where what the run has made is of no use, as its loss is no finite number; else empty.
  std::string not_finite() const;
  bool has_finite_weights = true;  ///< at the end
  double samples_per_s() const { return timed_s > 0 ? timed_samples / timed_s : 0; }
  TimedSteps timed() const;
  /// The sum of the speeds alone, of the devices that take samples.
  double ideal_samples_per_s() const;
  /// The samples of the timed steps over what the devices would have made alone.
  double efficiency() const;
  /// Computing time divided by total time, of the devices that take samples: measures the balance, independent of other
  /// loads on the machine.
  double balance_efficiency() const;
};

const char* to_string(balance::BalancePolicy policy);
Json to_json(const RankLoss& loss);
Json to_json(const RankJoin& join);
Json to_json(const RunReport& report);

}  // namespace remuda::train
