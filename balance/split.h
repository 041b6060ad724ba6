// Split: how one step is shared out among unlike devices: how many samples each takes, which part of the parameters and
// of the optimizer's state it owns, how long the step then takes, and who is left out of it. Pure.
//
//   step = max(longest part, making) + exchange + longest update
//
// A part is computed in as many pieces as the device's memory demands, beside the state that it owns: pieces * fixed +
// samples * per sample. An update takes its time in proportion to what is owned. The exchange ends with its slowest
// member; one that is left out, with neither samples nor state, is a member all the same, as it receives parameters.
// Each of the three is as short as it can be on its own, in the subset of devices for which their sum is least:
// - Samples: solve.h, exact.
// - State: in proportion to 1 / update time, as far as memory goes (water-filling: state_parts()).
// - Subsets: leaving out only saves exchange, so that those worth trying are the ones without the slowest members.
// - Where memory is short, state and samples contend for it: parts of state are tried in steps of kStateStep, and then
// in finer ones.
//
// Example:
//   const std::vector<SplitDevice> devices{{.compute = {0, 1e-3}, .update_s = 10e-3},
//                                          {.compute = {0, 3e-3}, .update_s = 30e-3}};
//   const auto split = best_split(devices, {.batch = 64});  // shares 48 and 16, state 0.75 and 0.25
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "balance/cost_line.h"
#include "balance/role.h"
#include "balance/solve.h"

namespace remuda::balance {

struct StateBytes {
  double whole = 0;  ///< that each rank holds, whatever it owns
  double owned = 0;  ///< besides, of a rank that owns everything
};

/// What decides which part of the state a device owns.
struct StateOwner {
  Role role = Role::compute;
  double memory_bytes = 0;  ///< of the device; 0: not known
  double update_s = 0;      ///< of all state, if it owned that; 0: not known
  double most = 1;          ///< part, whatever its memory
};

/// Parts that add up to 1. Those with Role::state own all that fits in their memory, and the others the rest; those
/// with Role::preprocess nothing. Among equals the longest update is the shortest possible. Where the time of one that
/// may own is not known, they own in proportion to memory, or, where that is not known either, equal parts. Where there
/// is no room for all of it, each owns in proportion to its room.
std::vector<double> state_parts(std::span<const StateOwner> owners, const StateBytes& bytes);
/// The part that has room on one of them.
double room_for_state(const StateOwner& owner, const StateBytes& bytes);

/// A device as it was measured. 0 where it is not known.
struct SplitDevice {
  Role role = Role::compute;
  CostLine compute;         ///< of a piece: forward and backward passes, and what else its samples take; 0: takes none
  Bounds samples;           ///< that it may take, in all
  double most_state = 1;    ///< part of the state that it may own, whatever its memory
  double update_s = 0;      ///< of all state, if it owned it; not known: as long as on the slowest
  double exchange_s = 0;    ///< to send gradients, add up those that it owns, and receive parameters
  double receive_s = 0;     ///< only to receive parameters, when it is left out
  double memory_bytes = 0;  ///< of the device
  double room_bytes = 0, held_bytes = 0;     ///< that tensors may take; before a step, without the state that it owns
  double fixed_bytes = 0, sample_bytes = 0;  ///< that a step takes, as a line over the samples of a piece
  double least_bytes = 0;                    ///< and no less than this
  double usable = 1;  ///< part of what is free beside a sample that state may take, where the above are estimates
};

struct SplitTask {
  int batch = 0;
  int unit = 1;  ///< each share is a multiple of so many samples; what is left of the batch is no unit
  StateBytes state;
  double making_s = 0;              ///< of all samples, by those that preprocess
  std::vector<double> state_given;  ///< parts that stay as they are; empty: they are to be found
};

struct Split {
  std::vector<int> shares, pieces;
  std::vector<double> state;  ///< parts of 1
  double part_s = 0, exchange_s = 0, update_s = 0, step_s = 0;

  bool leaves_out(size_t device) const { return shares[device] == 0 && state[device] == 0; }
};

/// Nothing where the batch does not fit in the memory of those that compute, or in their bounds.
std::optional<Split> best_split(std::span<const SplitDevice> devices, const SplitTask& task);

/// What a step takes with these shares and parts. Nothing where a share does not fit beside the state in single samples
/// (or units).
std::optional<Split> predicted(std::span<const SplitDevice> devices, const SplitTask& task, std::vector<int> shares,
                               std::vector<double> state);

/// The same devices, of which one neither takes samples nor owns state, though it stays a member.
std::vector<SplitDevice> without(std::span<const SplitDevice> devices, size_t device);

inline constexpr double kStateStep = 1.0 / 32;  ///< of all state, where memory is short

}  // namespace remuda::balance
