// TrainProgress: the events of a running job as text for people.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "job/train_job.h"
#include "workers/root_cause.h"

namespace remuda::cli {

/// "cpu:1", "cpu:1 (slowed 3.0x)" or "cpu:1 (slowed 3.0x, state)". `role`: its word; compute needs none.
std::string device_label(const std::string& name, double slowdown, const std::string& role = "");
/// Those of all ranks, which differ: "cpu:0 #1", "cpu:0 #2 (slowed 3.0x)".
std::vector<std::string> device_labels(const job::TrainJob& job);
/// A speed with as many digits as are meaningful: "5301", "83.4".
std::string rate_text(double per_second);

/// State in, text out; no IO, no clock.
class TrainProgress {
 public:
  explicit TrainProgress(const job::TrainJob& job);

  /// The first line: the model and the devices.
  std::string opening() const;
  /// Takes in an event of a rank. Returns a line to keep (a device's own speed, new shares, the end of an epoch), or
  /// nothing; two where ranks have changed, as their first split is told with them.
  std::string take(int rank, const Json& event);
  /// Ranks were lost; those that are left go on. Returns a line to keep.
  std::string take_loss(const std::vector<int>& left, const std::vector<workers::Failure>& lost);
  /// The current state: "epoch 1/5, 10 %, loss 0.5310, 5301 samples/s, cpu:0 76 % wait 1 % · cpu:1 24 % wait 0 %". The
  /// devices are summarised, "8 devices wait 0 to 12 %", where the text would have more than `width` characters.
  std::string status(size_t width = std::string::npos) const;
  /// Part of all steps that is done; less than 0 before the first.
  double done() const { return steps_ > 0 ? step_ / steps_ : -1; }
  bool has_begun() const { return step_ > 0; }
  /// About how long a step takes, waits included; 0 while nothing is known.
  double step_s() const;

 private:
  std::string take_alone(int rank, const Json& event);
  std::string take_balance(const Json& event);
  std::string balance_line(const Json& event, double step);
  std::string held_split(double step);
  std::string take_memory(const Json& event) const;
  std::string take_collectives(const Json& event) const;
  std::string take_epoch(const Json& event) const;
  std::string take_left(const Json& event);
  std::string take_joined(const Json& event);
  bool is_known(const Json& event);
  std::string take_regrouped(const Json& event);
  static std::string regrouped_line(const Json& event);
  static std::string take_profile(const Json& event);
  static std::string take_checkpoint(const Json& event);
  void take_step(const Json& event);
  double part_waited(size_t rank) const;
  std::string per_device() const;
  std::string devices_in_sum() const;

  std::vector<std::string> all_devices_, all_labels_;  ///< names that differ; the same with the slowdown
  std::vector<std::string> devices_;                   ///< of those that are left
  int epochs_;
  size_t ready_ = 0, measured_ = 0;
  double step_ = 0, steps_ = 0, epoch_ = 0, loss_ = 0, samples_per_s_ = 0;
  double predicted_step_s_ = 0;
  std::vector<double> shares_, compute_s_, wait_s_;
  double generation_ = 0;  ///< of ranks that agree among themselves; each of them says so
  std::string output_;     ///< that is being made, after the last step
  bool regroups_ = false;  ///< ranks were lost, and where the others go on is not known yet
  Json split_;             ///< the first one of other ranks, until these, or the step, are known; else null
};

}  // namespace remuda::cli
