// What a trainer does for devices of unlike roles.
#include <algorithm>
#include <cmath>

#include "balance/role_forecast.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

/// What a rank tells the others of its device. Sent as raw bytes.
struct OwnMeasures {
  double update_s = 0;  ///< of what it owns
  double make_s = 0;    ///< of a sample, by all of its threads
  double memory_bytes = 0;
  int32_t makes_in_turn = 0, is_cpu = 0;
};

balance::Making making_of(const OwnMeasures& own) {
  if (own.makes_in_turn) return balance::Making::in_turn;
  return own.is_cpu ? balance::Making::same_cores : balance::Making::beside;
}

/// The line of what forward and backward took, of the times that were finite; zero where none was.
balance::CostLine compute_line(const std::vector<balance::BatchTime>& alone, double update_s) {
  constexpr double kLeast_s = 1e-9;
  std::vector<balance::BatchTime> times;
  for (balance::BatchTime time : alone) {
    if (!std::isfinite(time.seconds)) continue;
    time.seconds = std::max(kLeast_s, time.seconds - update_s);
    times.push_back(time);
  }
  return times.empty() ? balance::CostLine() : balance::fit_line(times);
}

balance::MeasuredDevice measured(const OwnMeasures& own, const std::vector<balance::BatchTime>& alone, double owned,
                                 const MemoryNeed& need, double state_bytes) {
  balance::MeasuredDevice device{.compute = compute_line(alone, own.update_s),
                                 .make_s = own.make_s,
                                 .making = making_of(own),
                                 .memory_bytes = own.memory_bytes};
  if (owned > 0) device.update_s = own.update_s / owned;
  if (need.known == 0) return device;
  device.room_bytes = need.room;
  device.held_bytes = need.held - owned * state_bytes;
  device.fixed_bytes = need.fixed;
  device.sample_bytes = need.per_sample;
  return device;
}

}  // namespace

/// Collective. Where some devices make the batches of the others.
Result<void> Trainer::prepare_feed() {
  const std::vector<int> makers = job::ranks_with(job_, balance::Role::preprocess);
  if (makers.empty()) return {};
  REMUDA_ASSIGN(auto feed, BatchFeed::create(communicator_, train_.set(),
                                             {.makers = makers,
                                              .takers = job::ranks_with(job_, balance::Role::compute),
                                              .seed = job_.train.seed,
                                              .workers = loader_threads(job_.data),
                                              .memory = batch_memory_}));
  batches_.take_from(std::move(feed));
  return {};
}

/// Collective. Before the first step, where not all devices compute, and what they can do alone was measured: what a
/// step will take with their roles, and what it would take without.
Result<void> Trainer::forecast_roles(const FirstSplit& split) {
  std::vector<balance::Role> asked;
  for (const job::DeviceSpec& device : job_.devices) asked.push_back(device.role);
  const std::vector<balance::Role> all_compute(asked.size(), balance::Role::compute);
  if (asked == all_compute || report_.checkpoints.balance_kept || !options_.inherited.joins.empty() || report_.stopped)
    return {};
  const int threads = loader_threads(job_.data);
  const OwnMeasures mine{.update_s = split.costs.update_s,
                         .make_s = split.costs.make_s / std::max(1, threads),
                         .memory_bytes = ops_.memory_bytes() / job::ranks_on_device_of(job_, communicator_.rank()),
                         .makes_in_turn = threads == 0,
                         .is_cpu = ops_.is_synchronous()};
  REMUDA_ASSIGN(const std::vector<OwnMeasures> all, gather_all(communicator_, mine, label::kNeeds));
  const FlatLayout& layout = parallel_->flat().layout();
  const balance::StateBytes& state = parallel_->state_needs();
  std::vector<balance::MeasuredDevice> devices;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const double owned = double(layout.owned(rank)) / double(layout.count());
    devices.push_back(measured(all[rank], split.costs.times.by_rank[rank], owned, memory_.needs()[rank], state.owned));
    devices.back().slowdown = job_.devices[rank].slowdown;
  }
  const int batch = job_.train.global_batch, unit = job::share_unit(job_);
  const auto step_with = [&](const std::vector<balance::Role>& roles) {
    return balance::forecast(devices, roles, state, batch, unit);
  };
  const std::vector<balance::Role> roles = job::roles_of(job_);
  const std::vector<balance::Role> best = balance::proposed_roles(devices, asked, state, batch, unit);
  const auto with = step_with(roles), without = step_with(all_compute);
  if (!with) return {};
  RoleReport& report = report_.roles.emplace();
  report.step_s = with->step_s;
  if (without) report.without_step_s = without->step_s;
  if (best != roles) report.proposed = best;
  const std::vector<std::string> names = job::device_names(job_);
  if (best == all_compute)
    report.sentence = balance::no_better_roles();
  else if (best == roles || roles == all_compute)
    report.sentence = balance::role_sentence(names, best, *step_with(best), without);
  else
    report.sentence = balance::better_roles_sentence(names, best, *step_with(best), *with);
  if (best != roles) report.sentence = "Better roles: " + report.sentence;
  if (is_first()) events_.send({{"event", "note"}, {"text", report.sentence}});
  return {};
}

}  // namespace remuda::train
