#include "pool/usage.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace remuda::pool {
namespace {

double faded(const Usage& usage, const Policy& policy, double now_s) {
  return usage.device_seconds * std::exp2(-std::max(0.0, now_s - usage.at_s) / policy.half_life_s);
}

double running_seconds(const PoolState& state, const Job& job, const Policy& policy, double now_s) {
  double seconds = 0;
  for (const Lease& lease : state.leases)
    if (lease.job == job.id) seconds += lease.share * faded_seconds(lease.since_s, now_s, policy);
  return seconds;
}

constexpr double kDay_s = 86400;
constexpr int64_t kDaysBefore = 6;

int64_t day_of(double at_s) { return static_cast<int64_t>(std::floor(at_s / kDay_s)); }

/// A day that is yet to come is of a clock that was set back since, or is behind now: it does not count, and is kept.
bool is_of_week(const Spent& spent, double now_s) {
  return spent.day >= day_of(now_s) - kDaysBefore && spent.day <= day_of(now_s);
}

double speed_of(const Job& job, const std::string& device) {
  const auto place = std::ranges::find(job.devices, device) - job.devices.begin();
  return static_cast<size_t>(place) < job.speeds.size() ? job.speeds.at(static_cast<size_t>(place)) : 1;
}

/// Calls visit(day, seconds) for each of the last seven days on which the job had the device, until `until_s`.
template <typename Visit>
void for_each_day(const Lease& lease, const Job& job, double until_s, double now_s, const Visit& visit) {
  const double weight = lease.share * speed_of(job, lease.device);
  for (int64_t day = day_of(now_s) - kDaysBefore; day <= day_of(now_s); ++day) {
    const double begin_s = std::max(lease.since_s, static_cast<double>(day) * kDay_s);
    const double end_s = std::min(until_s, static_cast<double>(day + 1) * kDay_s);
    if (end_s > begin_s) visit(day, weight * (end_s - begin_s));
  }
}

void add_spent(PoolState& state, const std::string& user, int64_t day, double seconds) {
  const auto key = [](const Spent& spent) { return std::pair(spent.user, spent.day); };
  const auto at = std::ranges::lower_bound(state.spent, std::pair(user, day), {}, key);
  if (at != state.spent.end() && key(*at) == std::pair(user, day))
    at->device_s += seconds;
  else
    state.spent.insert(at, Spent{user, day, seconds});
}

/// By their number, as a clock that is wrong for a moment makes all days old.
void forget_old_days(PoolState& state, const std::string& user) {
  constexpr ptrdiff_t kKept = 14;
  const auto days = std::ranges::equal_range(state.spent, user, {}, &Spent::user);
  if (std::ssize(days) > kKept) state.spent.erase(days.begin(), days.end() - kKept);
}

void spend(PoolState& state, const Job& job, double until_s, double now_s) {
  forget_old_days(state, job.user);
  for (const Lease& lease : state.leases)
    if (lease.job == job.id)
      for_each_day(lease, job, until_s, now_s,
                   [&](int64_t day, double seconds) { add_spent(state, job.user, day, seconds); });
}

}  // namespace

double faded_seconds(double since_s, double now_s, const Policy& policy) {
  REMUDA_CHECK(policy.half_life_s > 0, "usage fades");
  const double span = std::max(0.0, now_s - since_s);
  return policy.half_life_s / std::numbers::ln2 * -std::expm1(-span / policy.half_life_s * std::numbers::ln2);
}

double usage_of(const PoolState& state, const std::string& user, const Policy& policy, double now_s) {
  double seconds = 0;
  for (const Usage& usage : state.usage)
    if (usage.user == user) seconds += faded(usage, policy, now_s);
  for (const Job& job : state.jobs)
    if (job.state == JobState::running && job.user == user) seconds += running_seconds(state, job, policy, now_s);
  return seconds;
}

void charge(PoolState& state, const Job& job, const Policy& policy, double ended_s, double now_s) {
  const Usage of_job{job.user, running_seconds(state, job, policy, ended_s), ended_s};
  const double seconds = faded(of_job, policy, now_s);
  spend(state, job, ended_s, now_s);
  const auto known = std::ranges::find(state.usage, job.user, &Usage::user);
  if (known == state.usage.end())
    state.usage.push_back({job.user, seconds, now_s});
  else
    *known = {job.user, faded(*known, policy, now_s) + seconds, now_s};
}

double spent_s(const PoolState& state, const std::string& user, double now_s) {
  double seconds = 0;
  for (const Spent& spent : state.spent)
    if (spent.user == user && is_of_week(spent, now_s)) seconds += spent.device_s;
  for (const Lease& lease : state.leases)
    if (const Job* job = state.find(lease.job); job && job->user == user)
      for_each_day(lease, *job, now_s, now_s, [&](int64_t, double more) { seconds += more; });
  return seconds;
}

void clamp_future_times(PoolState& state, double now_s) {
  for (const Job& job : state.jobs) {
    if (job.state == JobState::ended || std::max(job.submitted_s, job.started_s) <= now_s) continue;
    Job& ahead = state.jobs.edit(job);
    ahead.submitted_s = std::min(job.submitted_s, now_s);
    ahead.started_s = std::min(job.started_s, now_s);
  }
  for (Lease& lease : state.leases) {
    const double ahead_s = std::max(0.0, lease.since_s - now_s);
    lease.since_s -= ahead_s;
    if (lease.until_s > 0) lease.until_s -= ahead_s;
  }
  for (Usage& usage : state.usage) usage.at_s = std::min(usage.at_s, now_s);
}

}  // namespace remuda::pool
