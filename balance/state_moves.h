// StateMoves: moves the state of a run to where it is updated faster, by what steps took.
//
// For runs of which nothing is known but their steps; where devices were measured alone, Participants does it, and
// decides who takes part besides. State goes by the law (state_parts() in split.h): in proportion to 1 / update time,
// as far as there is room, for steps that are kWorthMoving shorter. Pure: no clock, no IO. One thread at a time.
//
//   if (const auto parts = moves.observe({update_s, peak_bytes, step_s})) divide(*parts);
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "balance/split.h"
#include "balance/update_times.h"

namespace remuda::balance {

struct StateSeen {
  std::vector<double> update_s;    ///< of what each device owns
  std::vector<double> peak_bytes;  ///< of its memory, that were in use in the step; 0: not known
  double step_s = 0;
};

class StateMoves {
 public:
  /// `owners`: their update times are learned. `parts`: what each owns now.
  StateMoves(std::vector<StateOwner> owners, const StateBytes& bytes, std::vector<double> parts);

  /// After each step. The parts from the next step on, where they change: they are taken to be in force then.
  std::optional<std::vector<double>> observe(const StateSeen& step);

 private:
  double most_of(size_t device, double peak_bytes) const;

  std::vector<StateOwner> owners_;
  const StateBytes bytes_;
  std::vector<double> parts_;
  UpdateTimes updates_;
  std::vector<double> peak_bytes_;  ///< of any step
  std::deque<double> steps_s_;      ///< since the last move
  int since_move_ = 0;              ///< steps
  MovePace pace_;
};

}  // namespace remuda::balance
