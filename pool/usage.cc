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

void charge(PoolState& state, const Job& job, const Policy& policy, double now_s) {
  const double seconds = running_seconds(state, job, policy, now_s);
  const auto known = std::ranges::find(state.usage, job.user, &Usage::user);
  if (known == state.usage.end())
    state.usage.push_back({job.user, seconds, now_s});
  else
    *known = {job.user, faded(*known, policy, now_s) + seconds, now_s};
}

void clamp_future_times(PoolState& state, double now_s) {
  for (Job& job : state.jobs) {
    if (job.state == JobState::ended) continue;
    job.submitted_s = std::min(job.submitted_s, now_s);
    job.started_s = std::min(job.started_s, now_s);
  }
  for (Lease& lease : state.leases) {
    const double ahead_s = std::max(0.0, lease.since_s - now_s);
    lease.since_s -= ahead_s;
    if (lease.until_s > 0) lease.until_s -= ahead_s;
  }
  for (Usage& usage : state.usage) usage.at_s = std::min(usage.at_s, now_s);
}

}  // namespace remuda::pool
