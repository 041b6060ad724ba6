// Balancer: decides, step after step, how many samples of the global batch each device takes.
//
// Pure: no clock, no IO, no randomness; the same calls give the same decisions. One thread at a time.
// Rule (policy automatic): per device, time = fixed + per_sample * batch is fitted to the medians of recent steps
// (device_model.h), the min-max problem is solved in integers (solve.h), and the shares move when the predicted gain is
// above least_gain by more than the standard error of what is known. So a large gain is taken at once, a small one when
// it is certain, and noise moves nothing. On a machine whose speeds change all the time (unrest.h), the shares that
// would have been best in the last steps are used instead of those that medians give. A device whose samples make steps
// longer gets none, and is tried again from time to time, the less often the more a trial costs; one that comes and
// goes is kept out ever longer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "balance/device_model.h"
#include "balance/hindsight.h"
#include "balance/policy.h"
#include "balance/reason.h"
#include "balance/solve.h"
#include "balance/unrest.h"
#include "base/result.h"

namespace remuda::balance {

struct BalanceOptions {
  BalancePolicy policy = BalancePolicy::automatic;
  int global_batch = 0;            ///< a multiple of `unit`
  int unit = 1;                    ///< each share is a multiple of so many samples: of a micro-batch
  std::vector<double> weights;     ///< for fixed: one per device
  std::vector<Bounds> bounds;      ///< one per device
  std::vector<std::string> names;  ///< one per device, for reasons; empty: "device 0" and so on
  double least_gain = 0.02;        ///< a move must shorten the predicted step by this fraction (see kHindsightLeast)
  int settle_steps = 2;            ///< steps ignored after the shares moved: allocators and caches warm up
};

/// A decision, as it is reported.
struct BalanceDecision {
  int step = 0;  ///< after this step's times were seen; 0 from start()
  std::vector<int> shares;
  double predicted_step_s = 0;       ///< 0 while a device that takes samples is not measured yet
  double predicted_gain = 0;         ///< fraction of the step time saved against the shares before
  std::string reason;                ///< one sentence for people
  std::vector<double> state_shares;  ///< parts of the state that devices own from then on; empty: the same as before
};

class Balancer {
 public:
  explicit Balancer(BalanceOptions options);

  /// A measurement made before training: `device` took `seconds` for `batch` samples; a started unit counts as one.
  void calibrate(int device, int batch, double seconds);
  /// The first shares, from the calibration; call once, after it. Fails when the bounds do not hold the global batch.
  Result<BalanceDecision> start();

  /// Takes the time of each device for its current share in `step`; ignored where the share is 0. Returns a decision
  /// when the shares are to change.
  std::optional<BalanceDecision> observe(int step, std::span<const double> seconds);

  /// `device` cannot take more than `most` samples (it ran out of memory), which is rounded down to whole units: new
  /// shares at once, under every policy. Where those that may take samples have no room for all, all may again.
  /// Fails, and changes no bounds, when the devices together no longer hold the global batch.
  Result<BalanceDecision> limit(int step, int device, int most);

  /// Only these devices take samples from now on, and none is tried again that does not: new shares at once, where the
  /// bounds leave such, under the policy automatic. See Participants.
  std::optional<BalanceDecision> allow(int step, const std::vector<bool>& devices, std::string reason);

  const std::vector<int>& shares() const { return shares_in_samples_; }
  /// Of each device.
  std::vector<Bounds> bounds_in_samples() const;
  /// What is known of the device's speed: times of batches, as calibrate() takes them, one after the other.
  std::vector<BatchTime> known_times(int device) const;
  /// Moves since start().
  int changes() const { return changes_; }
  /// Per device, by allow().
  const std::vector<bool>& allowed() const { return allowed_; }

 private:
  bool measured(std::span<const int> shares) const;
  std::vector<CostLine> lines() const;
  std::vector<int> nominal() const;
  std::vector<Bounds> allowed_bounds() const;
  std::vector<Bounds> bounds() const;
  bool hopeless(int device) const;
  std::vector<int> split() const;
  std::vector<int> careful_split() const;
  bool every_device_has(int times) const;
  double gain(std::span<const int> next) const;
  std::vector<CostLine> shapes() const;
  HindsightGain known_gain(std::span<const int> next) const;
  bool calibrated() const;
  bool restless() const;
  void take_times(std::span<const double> seconds);
  std::string name(int device) const;
  ShareMove moved(int device, std::span<const int> next) const;
  std::vector<int> in_samples(std::vector<int> units) const;
  void take(std::vector<int> shares);
  std::string why(std::span<const int> next, double gain) const;
  double trial_worth_after(int device) const;
  std::optional<BalanceDecision> retry_idle(int step);
  BalanceDecision move(int step, std::vector<int> next, std::string reason);

  BalanceOptions options_;  ///< its batch and bounds are in units, as is all below
  std::vector<DeviceModel> models_;
  Hindsight hindsight_;  ///< the steps at the present speeds
  Unrest unrest_;
  std::vector<CostLine> calibrated_;  ///< per device, from several batch sizes; all zero where there were none
  std::vector<bool> allowed_;         ///< per device: whether it may take samples
  std::vector<double> shifts_;        ///< per device: the factor by which its times grew since the last move
  std::vector<int> idle_steps_;       ///< per device: steps without samples
  std::vector<int> retry_after_;      ///< per device: idle steps until it is tried again
  std::vector<int>
      back_after_;  ///< per device: idle steps until it may come back on a restless machine; doubled each time
  std::vector<int> shares_;
  std::vector<int> shares_in_samples_;
  int observed_ = 0;  ///< steps that were used
  int settling_ = 0;  ///< next steps that are ignored
  int holding_ = 0;   ///< next steps that are used without a decision
  int changes_ = 0;
};

}  // namespace remuda::balance
