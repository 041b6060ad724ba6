// What moves of state go by. Pure. One thread at a time.
//
// UpdateTimes: how long each device takes to update all of the state, by what it took for the part that it owned in the
// last steps. MovePace: when state may move again.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace remuda::balance {

class UpdateTimes {
 public:
  explicit UpdateTimes(size_t devices) : seconds_(devices) {}

  /// Of one step: `update_s` that each took for the part that it owned. One that owned nothing shows nothing.
  void add(std::span<const double> update_s, std::span<const double> parts);
  /// The median; nothing until enough steps have shown it.
  std::optional<double> of(size_t device) const;
  /// Other parts may be updated at another speed.
  void clear();

 private:
  std::vector<std::deque<double>> seconds_;  ///< of all state, per device
};

/// State moves for steps that are shorter by this part, looked at every so many steps, and not sooner after another
/// move.
inline constexpr double kWorthMoving = 0.05;
inline constexpr int kStateMoveEvery = 8, kStateMovePause = 24;

/// That an update takes its time in proportion to what is owned holds for large parts only: where a move did not bring
/// half of what it was to bring, the next one has to wait four times as long.
class MovePace {
 public:
  /// So many steps after the last move.
  bool is_due(int steps) const { return steps >= pause_ && steps % kStateMoveEvery == 0; }
  /// The longest update takes so long, and would take so much less. True: it is to be so. False: the last move did not
  /// do what it was for.
  bool may_move(double longest_s, double then_s);

 private:
  int pause_ = kStateMovePause;
  double before_s_ = 0, expected_s_ = 0;  ///< of the last move: the longest update; 0: there was none
};

/// Of one value at least; the larger of two.
double median_of(const std::deque<double>& values);

}  // namespace remuda::balance
