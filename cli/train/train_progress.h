// TrainProgress: the events of a running job, told as text.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "job/train_job.h"

namespace remuda::cli {

/// "cpu:1", or "cpu:1 (slowed 3.0x)".
std::string device_label(const job::DeviceSpec& device);
/// A speed with as many digits as it is worth: "5301", "83.4".
std::string rate_text(double per_second);

/// State in, text out; no IO, no clock.
class TrainProgress {
 public:
  explicit TrainProgress(const job::TrainJob& job);

  /// The first line: what is trained on what.
  std::string opening() const;
  /// Takes an event of a rank in. Returns a line worth keeping (a device's own speed, new shares, the end of an epoch),
  /// or nothing.
  std::string take(int rank, const Json& event);
  /// What goes on now: "epoch 1/5, 10 %, loss 0.5310, 5301 samples/s, cpu:0 76 % wait 1 % · cpu:1 24 % wait 0 %".
  std::string status() const;
  /// Part of all steps that is done; less than 0 before the first.
  double done() const { return steps_ > 0 ? step_ / steps_ : -1; }
  double step() const { return step_; }

 private:
  std::string take_alone(int rank, const Json& event);
  std::string take_balance(const Json& event) const;
  std::string take_epoch(const Json& event) const;
  void take_step(const Json& event);
  std::string per_device() const;

  std::vector<job::DeviceSpec> devices_;
  int epochs_;
  size_t ready_ = 0, measured_ = 0;
  double step_ = 0, steps_ = 0, epoch_ = 0, loss_ = 0, samples_per_s_ = 0;
  std::vector<double> shares_, compute_s_, wait_s_;
};

}  // namespace remuda::cli
