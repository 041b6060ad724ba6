// DeviceModel: one device's speed, estimated from its recent steps.
//
// Times are kept per batch size, the medians are fitted by a line. A change of speed (throttling, another job) is found
// by a two-sided cumulative sum of the relative error in units of the noise (Page 1954); single errors are clipped, so
// that one spike never counts as a change. The line then keeps its shape, and its scale is taken from the newest times.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "balance/cost_line.h"

namespace remuda::balance {

class DeviceModel {
 public:
  /// Adds a step of `batch` > 0 samples that took `seconds`. When it shows that the speed changed, returns the factor
  /// by which times grew.
  std::optional<double> add(int batch, double seconds);

  bool measured() const { return !levels_.empty(); }
  int batch_sizes() const { return static_cast<int>(levels_.size()); }
  /// The median time of each batch size, as far as remembered; the last used one is at the back. Given to another
  /// model in this order, they make it one of the same speed.
  std::vector<BatchTime> times() const;
  /// The fitted line; only when measured().
  CostLine line() const;
  /// Whether the newest times look like a change of speed, which the next ones will confirm or not.
  bool doubtful() const;
  /// Number of times kept for this batch size, all at the current speed.
  int count(int batch) const;
  /// Relative standard deviation of one step's time.
  double noise() const;

 private:
  /// The recent times of one batch size.
  struct Level {
    int batch = 0;
    std::deque<double> seconds;
  };
  Level& level(int batch);
  double rescale();

  std::vector<Level> levels_;       ///< the last used one is at the back
  double slower_ = 0, faster_ = 0;  ///< the cumulative sums
};

}  // namespace remuda::balance
