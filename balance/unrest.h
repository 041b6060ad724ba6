// Unrest: whether the devices' speeds change all the time, as on a machine that others load.
//
// Medians follow one change of speed at a time. Where times scatter widely, or speeds change all the time, each
// device's median has a different error, and shares that follow medians follow noise.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace remuda::balance {

class Unrest {
 public:
  explicit Unrest(size_t devices) : shifts_(devices) {}

  /// To be called for each step.
  void step();
  /// The speed of `device` changed in this step.
  void shifted(int device);
  /// Times scatter by this much in this step, a relative standard deviation.
  void scattered(double noise);

  /// Whether there were signs of it within the last few hundred steps, or too few steps to know.
  bool present() const { return left_ > 0; }

 private:
  static constexpr int kUnknown = 40;
  std::vector<std::deque<int>> shifts_;  ///< per device: the last steps in which its speed changed
  int now_ = 0;
  int left_ = kUnknown;  ///< steps until it counts as calm
};

}  // namespace remuda::balance
