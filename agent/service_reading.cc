// When the machine is read, and what comes of that.
#include <algorithm>
#include <utility>

#include "agent/service.h"

namespace remuda::agent {

bool Service::is_fresh(double now_s) const { return now_s - read_at_s_ < kFresh_s && !is_due_; }

bool Service::has_waiting() const {
  const pool::PoolState& state = pool_.seen();
  return std::ranges::find(state.jobs, pool::JobState::waiting, &pool::Job::state) != state.jobs.end();
}

/// Jobs that do nothing show only when they are looked at (service_idle.cc). Processes that do not use remuda start and
/// end without notice while jobs wait, and other managers' jobs at any time. A recorded machine changes only when its
/// file does.
double Service::look_every_s() const {
  constexpr double kLive_s = 2, kRecorded_s = 10, kOthers_s = 10;
  if (has_waiting()) return std::min(idle_every_s(), view_.is_live() ? kLive_s : kRecorded_s);
  // Where device files are guarded, GPUs that another manager begins to give out are to be left to it.
  const bool may_have_others = !view_.allocations().empty() || (view_.is_live() && enforcement_.hides_devices());
  return std::min(idle_every_s(), may_have_others ? kOthers_s : kNever_s);
}

/// Where nobody asks for anything either: what the policy says of device files, and of jobs that do nothing.
double Service::next_policy_s() const {
  const bool is_in_force = enforcement_.may_guard() || !pool_.seen().leases.empty();
  return is_in_force ? policy_at_s_ + kPolicyLook_s : kNever_s;
}

bool Service::wants_reading(double now_s) const {
  if (is_reading_) return false;
  return is_due_ || wall_s() >= begins_at_s_ || handover_.wants_reading(now_s) || now_s - read_at_s_ >= look_every_s();
}

double Service::next_s(double now_s) const {
  double next_s = news_ ? now_s + kAgain_s : holds_->next_s();
  if (!is_reading_ && has_waiting()) next_s = std::min(next_s, now_s + std::max(0.0, begins_at_s_ - wall_s()));
  if (!is_reading_) next_s = std::min({next_s, read_at_s_ + look_every_s(), handover_.next_reading_s()});
  if (!unwritten_.empty() || !without_keeper_.empty()) next_s = std::min(next_s, std::max(now_s, busy_until_s_));
  next_s = std::min({next_s, next_policy_s(), enforcement_.next_s(), heartbeat_.next_s(), revival_.next_s(),
                     handover_.next_s(now_s), daemons_.next_s(), partitions_.next_s()});
  return wants_reading(now_s) ? now_s : next_s;
}

void Service::take_reading(Result<pool::MachineView> reading, double now_s) {
  is_reading_ = false;
  read_at_s_ = now_s;
  is_blind_ = !reading;
  begins_at_s_ = begins_next(pool_.seen(), wall_s());
  if (!reading) return handover_.reading_failed(now_s);
  reading->follow(view_);
  view_ = std::move(*reading);
  policy_at_s_ = now_s;
  heed_policy();
  enforce();
  handover_.leave(given_out());
  handover_.look(view_.inventory(), view_.policy() ? &view_.policy()->health : nullptr, now_s);
  const bool is_due = std::exchange(is_due_, false);  // what has come free since it began looks held still
  (void)change(pool::StartJobs{}, now_s);
  record_idle(now_s);
  is_due_ = is_due_ || is_due;
  change_partitions(now_s);
}

}  // namespace remuda::agent
