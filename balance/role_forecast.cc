#include "balance/role_forecast.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace remuda::balance {
namespace {

constexpr double kSame = 0.01;          // of a step: a smaller difference is none
constexpr double kUsableByState = 0.9;  // of free memory, by state

/// What a sample takes in all where the device makes it itself.
CostLine line_with_making(const MeasuredDevice& device) {
  const double compute_s = device.compute.per_sample_s, make_s = device.make_s;
  CostLine line = device.compute;
  switch (device.making) {
    case Making::in_turn:
      line.per_sample_s = compute_s + make_s;
      break;
    case Making::same_cores:
      line.per_sample_s = std::max(compute_s, compute_s / device.slowdown + make_s);
      break;
    case Making::beside:
      line.per_sample_s = std::max(compute_s, make_s);
      break;
  }
  return line;
}

std::string role_text(std::span<const std::string> names, std::span<const Role> roles) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < names.size(); ++i)
    if (roles[i] != Role::compute)
      texts.push_back(fmt::format("{} {}", names[i], roles[i] == Role::state ? "for state" : "to preprocess"));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string seconds_text(double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); }

/// What the step without the roles would be like, and what limits the one with them.
std::string reasons(std::span<const std::string> names, std::span<const Role> roles, const Forecast& with,
                    const Forecast& without) {
  std::vector<std::string> all;
  const int batch = std::accumulate(without.shares.begin(), without.shares.end(), 0);
  for (size_t i = 0; i < names.size(); ++i)
    if (roles[i] != Role::compute)
      all.push_back(fmt::format("without, {} would take {} of {} samples", names[i], without.shares[i], batch));
  for (size_t i = 0; i < names.size(); ++i)
    if (with.shares[i] > 0 && without.pieces[i] != with.pieces[i])
      all.push_back(fmt::format("{} computes its part in {} piece{}, in place of {}", names[i], with.pieces[i],
                                with.pieces[i] == 1 ? "" : "s", without.pieces[i]));
  if (with.making_s > 0)
    all.push_back(fmt::format("to make the samples of a step takes {}, and to compute them {}",
                              seconds_text(with.making_s), seconds_text(with.part_s)));
  return fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace

double making_s(std::span<const MeasuredDevice> devices, std::span<const Role> roles, int batch) {
  double per_s = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (roles[i] != Role::preprocess) continue;
    if (devices[i].make_s <= 0) return 0;
    per_s += 1 / devices[i].make_s;
  }
  return per_s > 0 ? batch / per_s : 0;
}

std::vector<SplitDevice> split_devices(std::span<const MeasuredDevice> devices, std::span<const Role> roles) {
  const bool is_fed = std::ranges::find(roles, Role::preprocess) != roles.end();
  std::vector<SplitDevice> all;
  for (size_t i = 0; i < devices.size(); ++i) {
    const MeasuredDevice& device = devices[i];
    const bool is_known = device.compute.seconds(1) > 0;
    all.push_back({.role = roles[i],
                   .compute = is_fed || !is_known ? device.compute : line_with_making(device),
                   .samples = {},
                   .update_s = device.update_s,
                   .exchange_s = device.exchange_s,
                   .receive_s = device.exchange_s,
                   .memory_bytes = device.memory_bytes,
                   .room_bytes = device.room_bytes,
                   .held_bytes = device.held_bytes,
                   .fixed_bytes = device.fixed_bytes,
                   .sample_bytes = device.sample_bytes,
                   .least_bytes = device.least_bytes,
                   .usable = kUsableByState});
  }
  return all;
}

std::optional<Forecast> forecast(std::span<const MeasuredDevice> devices, std::span<const Role> roles,
                                 const StateBytes& state, int batch, int unit) {
  const double all_made_s = making_s(devices, roles, batch);
  const SplitTask task{.batch = batch, .unit = unit, .state = state, .making_s = all_made_s, .state_given = {}};
  auto split = best_split(split_devices(devices, roles), task);
  if (!split) return std::nullopt;
  return Forecast{.step_s = split->step_s,
                  .shares = std::move(split->shares),
                  .pieces = std::move(split->pieces),
                  .state_shares = std::move(split->state),
                  .making_s = all_made_s,
                  .part_s = split->part_s};
}

std::vector<Role> proposed_roles(std::span<const MeasuredDevice> devices, std::span<const Role> asked,
                                 const StateBytes& state, int batch, int unit) {
  std::vector<Role> best(asked.begin(), asked.end());
  std::ranges::replace(best, Role::automatic, Role::compute);
  const auto step_s = [&](const std::vector<Role>& roles) {
    const auto found = forecast(devices, roles, state, batch, unit);
    return found ? found->step_s : INFINITY;
  };
  for (double least_s = step_s(best);;) {
    std::vector<Role> better = best;
    double better_s = least_s;
    for (size_t i = 0; i < asked.size(); ++i) {
      if (asked[i] != Role::automatic) continue;
      for (const Role role : {Role::compute, Role::preprocess, Role::state}) {
        std::vector<Role> tried = best;
        tried[i] = role;
        if (const double tried_s = step_s(tried); tried_s < better_s) better = tried, better_s = tried_s;
      }
    }
    if (!(better_s < (1 - kWorthARole) * least_s)) return best;
    best = better;
    least_s = better_s;
  }
}

std::string no_better_roles() {
  return fmt::format(
      "By what each device was measured to do alone, no other roles would make a step {:.0f} % shorter than if all "
      "compute.",
      100 * kWorthARole);
}

std::string role_sentence(std::span<const std::string> names, std::span<const Role> roles, const Forecast& with,
                          const std::optional<Forecast>& without) {
  const std::string who = role_text(names, roles);
  if (!without) return fmt::format("Without {}, the batch would not fit in the memory of the devices.", who);
  const double gain = 1 - with.step_s / without->step_s;
  const std::string change = std::abs(gain) < kSame ? "neither shorter nor longer"
                             : gain > 0             ? fmt::format("about {:.0f} % shorter", 100 * gain)
                                                    : fmt::format("about {:.0f} % longer", -100 * gain);
  return fmt::format(
      "With {}, a step is {} than if all devices computed, by what each was measured to do alone: {} in place of {} "
      "({}).",
      who, change, seconds_text(with.step_s), seconds_text(without->step_s), reasons(names, roles, with, *without));
}

std::string better_roles_sentence(std::span<const std::string> names, std::span<const Role> better,
                                  const Forecast& then, const Forecast& now) {
  return fmt::format(
      "With {}, a step would be about {:.0f} % shorter, by what each was measured to do alone: {} in place of {}.",
      role_text(names, better), 100 * (1 - then.step_s / now.step_s), seconds_text(then.step_s),
      seconds_text(now.step_s));
}

}  // namespace remuda::balance
