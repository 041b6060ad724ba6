#include "balance/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/check.h"

namespace remuda::balance {
namespace {

constexpr double kRounding = 1e-9;  // of a part
constexpr int kRounds = 8;          // of the search for state that makes room for samples,
constexpr int kStateSteps = 32;     // and steps of it that are tried to each side

/// What a piece of so many samples takes of a device's memory.
double step_bytes(const SplitDevice& device, int samples) {
  return std::max(device.least_bytes, device.fixed_bytes + device.sample_bytes * samples);
}

/// What a device does with so much of the state.
class Worker {
 public:
  Worker(const SplitDevice& device, double state_bytes) : device_(device) {
    free_bytes_ = device.room_bytes - device.held_bytes - state_bytes;
  }

  bool fits(int samples) const { return device_.room_bytes <= 0 || step_bytes(device_, samples) <= free_bytes_; }
  bool may_compute() const { return takes_samples(device_.role) && device_.compute.seconds(1) > 0; }
  int pieces(int samples) const {
    int pieces = 1;
    while (pieces < samples && !fits((samples + pieces - 1) / pieces)) pieces = std::min(2 * pieces, samples);
    return pieces;
  }
  double seconds(int samples) const {
    return samples == 0 ? 0 : pieces(samples) * device_.compute.fixed_s + samples * device_.compute.per_sample_s;
  }

 private:
  const SplitDevice& device_;
  double free_bytes_ = 0;
};

/// Of one step: the devices with all times known, and what narrows down who does what.
class Search {
 public:
  Search(std::span<const SplitDevice> devices, const SplitTask& task)
      : task_(task), devices_(devices.begin(), devices.end()) {
    double slowest_s = 0;
    for (const SplitDevice& device : devices_) slowest_s = std::max(slowest_s, device.update_s);
    for (SplitDevice& device : devices_)
      if (device.update_s <= 0) device.update_s = slowest_s;
  }

  /// What a step takes so; nothing where a part does not fit.
  std::optional<Split> judge(std::vector<int> shares, std::vector<double> state) const {
    Split split{.shares = std::move(shares), .pieces = {}, .state = std::move(state)};
    for (size_t i = 0; i < devices_.size(); ++i) {
      const Worker worker(devices_[i], split.state[i] * task_.state.owned);
      if (split.shares[i] > 0 && !worker.fits(1)) return std::nullopt;
      split.pieces.push_back(worker.pieces(split.shares[i]));
      split.part_s = std::max(split.part_s, worker.seconds(split.shares[i]));
      split.update_s = std::max(split.update_s, split.state[i] * devices_[i].update_s);
      split.exchange_s =
          std::max(split.exchange_s, split.leaves_out(i) ? devices_[i].receive_s : devices_[i].exchange_s);
    }
    split.step_s = std::max(split.part_s, task_.making_s) + split.exchange_s + split.update_s;
    return split;
  }

  /// The best where only those may take part whose exchange takes no longer.
  std::optional<Split> within(double exchange_s) const {
    std::vector<double> most, all;
    for (size_t i = 0; i < devices_.size(); ++i) {
      const bool may = devices_[i].exchange_s <= exchange_s;
      most.push_back(may ? most_state(i, true) : 0);
      all.push_back(may ? most_state(i, false) : 0);
    }
    std::optional<Split> best = with_state_up_to(most, exchange_s);
    if (!task_.state_given.empty() || !is_short()) return best;
    for (double step = kStateStep; step > kStateStep * kStateStep / 2; step *= kStateStep)
      for (int round = 0; round < kRounds; ++round)
        if (!move_state(all, step, exchange_s, most, best)) break;
    return best;
  }

  std::set<double> exchanges() const {
    std::set<double> all;
    for (const SplitDevice& device : devices_) all.insert(device.exchange_s);
    return all;
  }

 private:
  /// Whether state and samples may contend for the memory of a device.
  bool is_short() const {
    const auto holds_all = [&](const SplitDevice& device) {
      return Worker(device, task_.state.owned * device.most_state).fits(std::min(task_.batch, device.samples.high));
    };
    return task_.state.owned > 0 && !std::ranges::all_of(devices_, holds_all);
  }

  /// That fits; `beside_samples`: so that one sample still does.
  double most_state(size_t i, bool beside_samples) const {
    const SplitDevice& device = devices_[i];
    if (device.room_bytes <= 0 || task_.state.owned <= 0) return device.most_state;
    const bool takes_any = device.samples.high > 0 && Worker(device, 0).may_compute();
    const double sample_bytes = beside_samples && takes_any ? step_bytes(device, 1) : 0;
    const double free_bytes = device.room_bytes - device.held_bytes - sample_bytes;
    return std::clamp(device.usable * free_bytes / task_.state.owned, 0.0, device.most_state);
  }

  /// Nothing where it has no room.
  std::vector<double> state_within(const std::vector<double>& most) const {
    if (!task_.state_given.empty()) return task_.state_given;
    std::vector<StateOwner> owners;
    for (size_t i = 0; i < devices_.size(); ++i)
      owners.push_back({devices_[i].role, devices_[i].memory_bytes, devices_[i].update_s, most[i]});
    std::vector<double> parts = state_parts(owners, task_.state);
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i] > room_for_state(owners[i], task_.state) + kRounding) return {};
    return parts;
  }

  std::optional<Split> with_state_up_to(const std::vector<double>& most, double exchange_s) const {
    std::vector<double> state = state_within(most);
    if (state.empty()) return std::nullopt;
    std::vector<Worker> workers;
    std::vector<Bounds> bounds;
    const int unit = task_.unit;
    for (size_t i = 0; i < devices_.size(); ++i) {
      const SplitDevice& device = devices_[i];
      workers.emplace_back(device, state[i] * task_.state.owned);
      const bool may = workers[i].may_compute() && workers[i].fits(1) && device.exchange_s <= exchange_s;
      bounds.push_back({may ? (device.samples.low + unit - 1) / unit : 0, may ? device.samples.high / unit : 0});
    }
    std::vector<int> shares = solve_min_max([&](size_t i, int units) { return workers[i].seconds(units * unit); },
                                            task_.batch / unit, bounds);
    if (shares.empty()) return std::nullopt;
    for (int& share : shares) share *= unit;
    return judge(std::move(shares), std::move(state));
  }

  /// Lets one device own less than it might, or more again. False where that makes no step shorter.
  bool move_state(const std::vector<double>& all, double step, double exchange_s, std::vector<double>& most,
                  std::optional<Split>& best) const {
    const std::vector<double> before = most;
    bool is_better = false;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].room_bytes <= 0 || !takes_samples(devices_[i].role)) continue;
      const double now = best ? best->state[i] : 0;
      for (int at = -kStateSteps; at <= kStateSteps; ++at) {
        std::vector<double> tried = before;
        tried[i] = now + at * step;
        if (tried[i] < 0 || tried[i] > all[i]) continue;
        auto split = with_state_up_to(tried, exchange_s);
        if (!split || (best && split->step_s >= best->step_s)) continue;
        best = std::move(split);
        most = std::move(tried);
        is_better = true;
      }
    }
    return is_better;
  }

  const SplitTask& task_;
  std::vector<SplitDevice> devices_;
};

}  // namespace

std::optional<Split> best_split(std::span<const SplitDevice> devices, const SplitTask& task) {
  REMUDA_CHECK(task.state_given.empty() || task.state_given.size() == devices.size(), "one part per device");
  const Search search(devices, task);
  std::optional<Split> best;
  for (const double exchange_s : search.exchanges()) {
    auto split = search.within(exchange_s);
    if (split && (!best || split->step_s < best->step_s)) best = std::move(split);
  }
  return best;
}

std::optional<Split> predicted(std::span<const SplitDevice> devices, const SplitTask& task, std::vector<int> shares,
                               std::vector<double> state) {
  return Search(devices, task).judge(std::move(shares), std::move(state));
}

std::vector<SplitDevice> without(std::span<const SplitDevice> devices, size_t device) {
  std::vector<SplitDevice> others(devices.begin(), devices.end());
  others[device].samples = {0, 0};
  others[device].most_state = 0;
  return others;
}

}  // namespace remuda::balance
