// Role forecast: what a step takes where devices have these roles, from what each was measured to do alone. Pure.
//
// What each then takes of samples and of the state, and how long, is the split of least time (split.h). Where nobody
// preprocesses, a device makes its samples itself: before it computes them (no threads: the times add up), on the cores
// that compute (the same, except for the time that a device which pretends to be slower sleeps), or beside (the longer
// time counts). Where some do, making is what they need for the samples of all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "balance/cost_line.h"
#include "balance/role.h"
#include "balance/split.h"

namespace remuda::balance {

enum class Making {
  in_turn,     ///< without threads of its own
  same_cores,  ///< by threads on the cores that compute
  beside,      ///< by threads on other cores
};

/// A device as it was measured alone. 0 where it is not known.
struct MeasuredDevice {
  CostLine compute;       ///< forward and backward passes
  double update_s = 0;    ///< of all parameters, if it owned them
  double exchange_s = 0;  ///< of a step: gradients and parameters
  double make_s = 0;      ///< of one sample, by all of its threads
  Making making = Making::beside;
  double slowdown = 1;                       ///< of compute: it sleeps the rest
  double memory_bytes = 0;                   ///< of the device
  double room_bytes = 0, held_bytes = 0;     ///< that tensors may take; before a step, without the state that it owns
  double least_bytes = 0;                    ///< that a step takes at least; more by the line
  double fixed_bytes = 0, sample_bytes = 0;  ///< that a step takes, as a line over the samples of a piece
};

struct Forecast {
  double step_s = 0;
  std::vector<int> shares;  ///< samples
  std::vector<int> pieces;
  std::vector<double> state_shares;  ///< parts of 1
  double making_s = 0;               ///< of all samples, by those that preprocess
  double part_s = 0;                 ///< of the slowest part
};

/// The devices in these roles, as the law takes them.
std::vector<SplitDevice> split_devices(std::span<const MeasuredDevice> devices, std::span<const Role> roles);

/// Of the samples of a batch, by those that preprocess; 0 where none does, or that is not known.
double making_s(std::span<const MeasuredDevice> devices, std::span<const Role> roles, int batch);

/// Nothing where the batch does not fit in the memory of those that compute. A device of which no time of a batch is
/// known takes no samples.
std::optional<Forecast> forecast(std::span<const MeasuredDevice> devices, std::span<const Role> roles,
                                 const StateBytes& state, int batch, int unit = 1);

/// For people: how much shorter or longer the roles make a step than if all devices computed, and why. `names` of the
/// devices; `without`: of all computing, or nothing where that does not fit.
std::string role_sentence(std::span<const std::string> names, std::span<const Role> roles, const Forecast& with,
                          const std::optional<Forecast>& without);

/// How much shorter other roles would make a step than those that devices have `now`, where these are not all compute.
std::string better_roles_sentence(std::span<const std::string> names, std::span<const Role> better,
                                  const Forecast& then, const Forecast& now);

/// That there is nothing to propose.
std::string no_better_roles();

/// The roles of least time for the devices that `asked` leaves open (Role::automatic), the others in theirs: one role
/// after the other is changed as long as that makes a step shorter by kWorthARole at least.
std::vector<Role> proposed_roles(std::span<const MeasuredDevice> devices, std::span<const Role> asked,
                                 const StateBytes& state, int batch, int unit = 1);
inline constexpr double kWorthARole = 0.05;

}  // namespace remuda::balance
