// What a trainer does for devices of unlike roles.
#include "balance/role_forecast.h"
#include "train/trainer.h"

namespace remuda::train {
/// Collective. Where some devices make the batches of the others.
Result<void> Trainer::prepare_feed() {
  const std::vector<int> makers = job::ranks_with(job_, balance::Role::preprocess);
  if (makers.empty()) return {};
  REMUDA_ASSIGN(auto feed, BatchFeed::create(communicator_, train_.set(),
                                             {.makers = makers,
                                              .takers = job::ranks_with(job_, balance::Role::compute),
                                              .seed = job_.train.seed,
                                              .workers = loader_threads(job_.data, ops_.is_synchronous()),
                                              .memory = batch_memory_}));
  batches_.take_from(std::move(feed));
  return {};
}

/// Collective. Before the first step, where not all devices compute, and what they can do alone was measured: what a
/// step will take with their roles, and what it would take without.
Result<void> Trainer::forecast_roles() {
  std::vector<balance::Role> asked;
  for (const job::DeviceSpec& device : job_.devices) asked.push_back(device.role);
  const std::vector<balance::Role> all_compute(asked.size(), balance::Role::compute);
  if (asked == all_compute || report_.checkpoints.balance_kept || !options_.inherited.joins.empty() || report_.stopped)
    return {};
  const balance::StateBytes& state = parallel_->state_needs();
  const int batch = job_.train.global_batch, unit = share_unit();
  const auto step_with = [&](const std::vector<balance::Role>& roles) {
    return balance::forecast(measured_, roles, state, batch, unit);
  };
  const std::vector<balance::Role> roles = job::roles_of(job_);
  const std::vector<balance::Role> best = balance::proposed_roles(measured_, asked, state, batch, unit);
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
