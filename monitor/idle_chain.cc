#include "monitor/idle_chain.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/duration.h"
#include "base/text.h"

namespace remuda::monitor {
namespace {

using pool::IdleStep;

/// When the policy has this step, in seconds of idleness; 0: never.
double after_s(const policy::Idle& policy, IdleStep step) {
  switch (step) {
    case IdleStep::none:
      break;
    case IdleStep::warned:
      return policy.warn_after_s;
    case IdleStep::signalled:
      return policy.signal_after_s;
    case IdleStep::released:
      return policy.release_after_s;
  }
  return 0;
}

/// The step that the policy has after this one; `none`: no further one.
IdleStep step_after(const policy::Idle& policy, IdleStep step) {
  for (const IdleStep next : {IdleStep::warned, IdleStep::signalled, IdleStep::released})
    if (next > step && after_s(policy, next) > 0) return next;
  return IdleStep::none;
}

std::string devices_text(int64_t job, const Inventory& machine, const pool::PoolState& pool) {
  std::string text;
  int count = 0;
  for (const pool::Lease& lease : pool.leases) {
    const Device* const device = machine.find(lease.device);
    if (lease.job != job || !device || device->kind == DeviceKind::cpu) continue;
    ++count;
    text = device->label();
  }
  return count == 1 ? text : counted(count, "device");
}

/// "gpu:0 busy for 1 % of 30 min: all processes of the job sleep".
std::string seen_text(const IdleWindow& window, const std::string& devices) {
  const char* const why = reason_text(window.reason());
  return fmt::format("{} busy for {:.0f} % of {}{}{}", devices, window.busy() * 100, duration_text(window.length_s()),
                     *why == '\0' ? "" : ": ", why);
}

/// What comes after this step.
std::string next_text(const policy::Idle& policy, IdleStep step) {
  if (step == IdleStep::released) return "";
  std::string text;
  for (IdleStep next = step_after(policy, step); next != IdleStep::none; next = step_after(policy, next))
    text += fmt::format("{}{} in {}", text.empty() ? "; unless work begins it " : " and ",
                        next == IdleStep::released ? "ends" : "is told to write a checkpoint",
                        duration_text(after_s(policy, next) - after_s(policy, step)));
  return text;
}

}  // namespace

std::vector<pool::RecordIdle> IdleChain::next(const IdleJobs& jobs, const policy::Idle& policy,
                                              const Inventory& machine, const pool::PoolState& pool, double now_s,
                                              double wall_s) {
  std::vector<pool::RecordIdle> told;
  std::map<int64_t, Taken> taken;
  const auto withdraw = [&](const pool::Job& job) {
    if (job.idle.step != IdleStep::none) told.push_back({job.id, {}});
  };
  for (const pool::Job& job : pool.jobs) {
    const bool is_ending = job.cancelled || job.preempted_by != 0 || !job.evicted.empty();
    const IdleWindow* const window = jobs.find(job.id);
    if (job.state != pool::JobState::running || is_ending) continue;
    if (!policy.is_on()) withdraw(job);
    if (!policy.is_on() || !window) continue;
    Taken& at = taken[job.id] = {job.idle.step, now_s, IdleStep::none, 0};
    if (const auto before = taken_.find(job.id); before != taken_.end()) {
      if (before->second.step == job.idle.step)
        at = before->second;
      else if (before->second.told == job.idle.step)
        at.at_s = before->second.told_s;
    }
    if (!window->is_whole()) continue;
    const double busy = window->busy();
    const bool is_idle = busy >= 0 && busy < policy.floor && window->reason() != IdleReason::waits_for_peer &&
                         !policy.exempts({job.user, job.groups});
    if (!is_idle) {
      withdraw(job);
      continue;
    }
    const IdleStep next = step_after(policy, at.step);
    const double wait_s = at.step == IdleStep::none ? 0 : after_s(policy, next) - after_s(policy, at.step);
    if (next == IdleStep::none || now_s - at.at_s < wait_s) continue;
    const std::string text = seen_text(*window, devices_text(job.id, machine, pool)) + next_text(policy, next);
    told.push_back({job.id, {next, wall_s, policy.signal, text}});
    at.told = next;
    at.told_s = now_s;
  }
  taken_ = std::move(taken);
  return told;
}

}  // namespace remuda::monitor
