// How a trainer shares a step out: by the law (balance/split.h) before the first one, and since then by what steps
// take.
#include <algorithm>
#include <cmath>

#include "balance/role_forecast.h"
#include "base/clock.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/role_measures.h"
#include "train/trainer.h"

namespace remuda::train {

/// Collective. What is known of each rank's device, the same on all.
Result<void> Trainer::gather_measures(const AloneCosts& costs, const KeptBalance* kept) {
  const int own = communicator_.rank();
  OwnMeasures mine = own_measures(costs, loader_threads(job_.data, ops_.is_synchronous()), ops_.is_synchronous(),
                                  ops_.memory_bytes() / job::ranks_on_device_of(job_, own));
  if (kept && kept->alone_of(own)) mine.update_s = kept->ranks[size_t(own)].update_s;
  REMUDA_ASSIGN(const std::vector<OwnMeasures> all, gather_all(communicator_, mine, label::kNeeds));
  const std::vector<double> parts = owned_parts();
  measured_.clear();
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    measured_.push_back(measured(all[rank], alone_[rank], parts[rank], memory_.needs()[rank],
                                 parallel_->state_needs().owned, job_.devices[rank].slowdown));
    report_.devices[rank].alone_part = measured_.back().compute;
    report_.devices[rank].alone_update_s = measured_.back().update_s;
  }
  return {};
}

/// Of all parameters.
std::vector<double> Trainer::owned_parts() const {
  const FlatLayout& layout = parallel_->flat().layout();
  std::vector<double> parts;
  for (int rank = 0; rank < communicator_.size(); ++rank)
    parts.push_back(double(layout.owned(rank)) / double(layout.count()));
  return parts;
}

/// Whether the state goes where it is updated fastest. Once it is packed, it stays; a compression that begins later was
/// chosen by steps with the parts that there are; and with fewer waits the time of an update is not known.
bool Trainer::may_move_state() const {
  return communicator_.size() > 1 && job_.balance.state_shares.empty() && parallel_->may_divide() &&
         job_.train.compression == job::Compression::none && job_.engine.fewer_waits == job::Switch::off;
}

/// The devices as the law sees them, their shares as the policy `auto` may choose them.
std::vector<balance::SplitDevice> Trainer::devices_to_split() const {
  std::vector<balance::SplitDevice> devices = balance::split_devices(measured_, job::roles_of(job_));
  for (size_t i = 0; i < devices.size(); ++i) devices[i].samples = balancer_.bounds_in_samples()[i];
  return devices;
}

balance::SplitTask Trainer::task_to_split() const {
  const int batch = job_.train.global_batch;
  return {.batch = batch,
          .unit = share_unit(),
          .state = parallel_->state_needs(),
          .making_s = balance::making_s(measured_, job::roles_of(job_), batch)};
}

/// Collective, before there is state. Gives it to those that update it fastest, where that makes a step much shorter.
/// False where it stays as it is, as with a split that was given: that is for the same bits each time, and a norm of
/// all gradients is rounded by who owns what.
Result<bool> Trainer::divide_by_speed() {
  if (job_.balance.policy != balance::BalancePolicy::automatic || !may_move_state() || report_.stopped) return false;
  std::vector<double> parts(size_t(communicator_.size()), 0);
  if (is_first()) {
    const std::vector<balance::SplitDevice> devices = devices_to_split();
    const auto best = balance::best_split(devices, task_to_split());
    balance::SplitTask as_it_is = task_to_split();
    as_it_is.state_given = owned_parts();
    const auto now = balance::best_split(devices, as_it_is);
    if (best && (!now || best->step_s < (1 - balance::kWorthMoving) * now->step_s)) parts = best->state;
  }
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(parts)), 0, label::kShares));
  if (std::ranges::max(parts) <= 0) return false;
  state_parts_ = parts;
  return parallel_->divide(state_parts_);
}

/// Rank 0, before the first step: the search for who had better take no part begins.
void Trainer::begin_search() {
  participants_.reset();
  const bool all_known = std::ranges::all_of(
      measured_, [](const balance::MeasuredDevice& device) { return device.compute.seconds(1) > 0; });
  const bool is_open = job_.balance.policy == balance::BalancePolicy::automatic && !report_.stopped && all_known;
  if (!is_first() || communicator_.size() == 1 || !is_open) return;
  balance::SplitTask task = task_to_split();
  if (!may_move_state()) task.state_given = owned_parts();
  participants_.emplace(
      balance::ParticipantsOptions{devices_to_split(), std::move(task), owned_parts(), job::device_names(job_)});
}

/// Rank 0: passes the times of the last step, which had the balancer's current shares, to those who decide.
void Trainer::observe(const StepTotals& totals) {
  std::vector<double> parts_s;
  for (size_t rank = 0; rank < totals.compute_s.size(); ++rank)
    parts_s.push_back(totals.compute_s[rank] - totals.update_s[rank]);
  if (const auto decision = balancer_.observe(report_.steps, parts_s)) record(*decision);
  if (options_.moves_state && next_state_.empty() && may_move_state())
    next_state_ = options_.moves_state(report_.steps);
  if (!participants_ || !next_state_.empty() || parallel_->is_compressed()) return;
  const auto change = participants_->observe(
      {.shares = last_parts_, .update_s = totals.update_s, .seconds = totals.compute_s[0] + totals.wait_s[0]});
  if (!change) return;
  auto decision = balancer_.allow(report_.steps, change->takes_part, change->reason);
  if (!decision) {  // the shares that it asks for are not to be had: those that there are stay
    participants_.reset();
    return;
  }
  decision->predicted_gain = change->gain;
  if (may_move_state()) next_state_ = decision->state_shares = change->state;
  record(*decision);
}

/// The bit of this rank's report, where parts of the state are to get other owners after the step.
unsigned Trainer::moving() const { return next_state_.empty() || done() ? 0 : unsigned(kMoving); }

/// Collective, between two steps.
Result<void> Trainer::move_state() {
  const double start = monotonic_s();
  std::vector<double> parts(size_t(communicator_.size()), 0);
  if (is_first()) parts = std::exchange(next_state_, {});
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(parts)), 0, label::kShares));
  if (buddy_) options_.inherited.copies.push_back(buddy_->copies());  // until all have new ones
  const bool had_buddy = buddy_ != nullptr;
  buddy_.reset();
  REMUDA_ASSIGN(const bool has_moved, parallel_->divide(parts));
  if (has_moved) {
    state_parts_ = std::move(parts);
    REMUDA_TRY(plan_memory(memory_.needs()[size_t(communicator_.rank())]));
    ++moves_;
    ++report_.state_moves;
  } else if (participants_) {
    participants_->keep_state(owned_parts());
  }
  if (had_buddy) REMUDA_TRY(begin_copies());
  if (participants_) participants_->took_move(monotonic_s() - start);
  return {};
}

/// Rank 0, at the end: who takes no part, and what that has gained.
void Trainer::report_left_out() {
  if (!participants_) return;
  for (const balance::LeftOut& one : participants_->left_out())
    report_.left_out.push_back({.rank = int(one.device),
                                .device = job::device_names(job_)[one.device],
                                .with_samples_per_s = job_.train.global_batch / one.with_s,
                                .without_samples_per_s = job_.train.global_batch / one.without_s,
                                .was_tried = one.was_tried});
}

}  // namespace remuda::train
