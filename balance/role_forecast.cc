#include "balance/role_forecast.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "balance/solve.h"

namespace remuda::balance {
namespace {

constexpr int kRounds = 4;      // of the split by what pieces cost, which the split decides
constexpr double kSame = 0.01;  // of a step: a smaller difference is none

/// A device in its role, with the state that it owns.
class Worker {
 public:
  Worker(const MeasuredDevice& device, bool makes_its_own, double state_bytes)
      : device_(device), line_(device.compute) {
    free_bytes_ = device.room_bytes - device.held_bytes - state_bytes;
    if (makes_its_own) add_making();
  }

  bool can_compute() const { return device_.compute.seconds(1) > 0 && fits(1); }
  bool fits(int samples) const {
    return device_.room_bytes <= 0 || device_.fixed_bytes + device_.sample_bytes * samples <= free_bytes_;
  }
  int pieces(int samples) const {
    int pieces = 1;
    while (pieces < samples && !fits((samples + pieces - 1) / pieces)) pieces = std::min(2 * pieces, samples);
    return pieces;
  }
  double seconds(int samples) const {
    return samples == 0 ? 0 : pieces(samples) * line_.fixed_s + samples * line_.per_sample_s;
  }
  /// As long as it has so many samples or less.
  CostLine line(int samples) const { return {pieces(samples) * line_.fixed_s, line_.per_sample_s}; }

 private:
  void add_making() {
    const double make_s = device_.make_s;
    const auto beside = [&](double compute_s, double busy_s) { return std::max(compute_s, busy_s); };
    switch (device_.making) {
      case Making::in_turn:
        line_.per_sample_s += make_s;
        break;
      case Making::same_cores:
        line_.per_sample_s = beside(line_.per_sample_s, line_.per_sample_s / device_.slowdown + make_s);
        break;
      case Making::beside:
        line_.per_sample_s = beside(line_.per_sample_s, make_s);
        break;
    }
  }

  const MeasuredDevice& device_;
  CostLine line_;
  double free_bytes_ = 0;
};

std::vector<double> parts_of_state(std::span<const MeasuredDevice> devices, std::span<const Role> roles,
                                   const StateBytes& state) {
  std::vector<StateOwner> owners;
  for (size_t i = 0; i < devices.size(); ++i) owners.push_back({roles[i], devices[i].memory_bytes});
  std::vector<double> parts = state_shares(owners, state);
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  for (double& part : parts) part /= sum;
  return parts;
}

/// Where none is known of a device, as long as on the slowest.
double longest_update_s(std::span<const MeasuredDevice> devices, std::span<const double> parts) {
  double slowest_s = 0, longest_s = 0;
  for (const MeasuredDevice& device : devices) slowest_s = std::max(slowest_s, device.update_s);
  for (size_t i = 0; i < devices.size(); ++i)
    longest_s = std::max(longest_s, parts[i] * (devices[i].update_s > 0 ? devices[i].update_s : slowest_s));
  return longest_s;
}

double making_s(std::span<const MeasuredDevice> devices, std::span<const Role> roles, int batch) {
  double per_s = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (roles[i] != Role::preprocess) continue;
    if (devices[i].make_s <= 0) return 0;
    per_s += 1 / devices[i].make_s;
  }
  return per_s > 0 ? batch / per_s : 0;
}

/// In units. Pieces depend on the split and the split on what pieces cost: some rounds find both.
std::vector<int> split(std::span<const Worker> workers, std::span<const Role> roles, int units, int unit) {
  std::vector<int> shares(workers.size(), 0);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<CostLine> lines;
    std::vector<Bounds> bounds;
    for (size_t i = 0; i < workers.size(); ++i) {
      const CostLine line = workers[i].line(shares[i] * unit);
      lines.push_back({line.fixed_s, line.per_sample_s * unit});
      bounds.push_back({0, roles[i] == Role::compute && workers[i].can_compute() ? units : 0});
    }
    std::vector<int> next = solve_min_max(lines, units, bounds);
    if (next == shares || next.empty()) return next;
    shares = std::move(next);
  }
  return shares;
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

std::optional<Forecast> forecast(std::span<const MeasuredDevice> devices, std::span<const Role> roles,
                                 const StateBytes& state, int batch, int unit) {
  const bool fed = std::ranges::find(roles, Role::preprocess) != roles.end();
  Forecast found{.state_shares = parts_of_state(devices, roles, state), .making_s = making_s(devices, roles, batch)};
  std::vector<Worker> workers;
  for (size_t i = 0; i < devices.size(); ++i)
    workers.emplace_back(devices[i], !fed, found.state_shares[i] * state.owned);
  found.shares = split(workers, roles, batch / unit, unit);
  if (found.shares.empty()) return std::nullopt;
  for (size_t i = 0; i < workers.size(); ++i) {
    int& share = found.shares[i];
    share *= unit;
    found.pieces.push_back(workers[i].pieces(share));
    found.part_s = std::max(found.part_s, workers[i].seconds(share));
  }
  found.step_s = std::max(found.part_s, found.making_s) + longest_update_s(devices, found.state_shares);
  return found;
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
