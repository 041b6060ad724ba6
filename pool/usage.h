// Usage: the device time of each user, which decays.
//
// Each second of each device counts, halved every half-life: a user who holds d devices for t seconds has used
//   integral over s from 0 to t of d * 2^(-s / H) ds = d * H / ln 2 * (1 - 2^(-t / H))
// when they end. So no time span, even with a wrong clock, counts more than H / ln 2 seconds per device.
#pragma once

#include <string>

#include "policy/policy.h"
#include "pool/state.h"

namespace remuda::pool {

using policy::Policy;

/// The usage at `now_s` of one device held from `since_s` to `now_s`.
double faded_seconds(double since_s, double now_s, const Policy& policy);

/// The user's device seconds, decayed; running jobs count up to now.
double usage_of(const PoolState& state, const std::string& user, const Policy& policy, double now_s);

/// Adds the usage of the job's leases, until it had ended, to that of its user, and to what that user has spent.
void charge(PoolState& state, const Job& job, const Policy& policy, double ended_s, double now_s);

/// What the user has had today and on the six days before, in seconds of the fastest GPU; running jobs count up to now.
/// Days are those of UTC.
double spent_s(const PoolState& state, const std::string& user, double now_s);

/// After the clock was set back, moves times in the future to now: arrivals, starts and usage, and leases, whose ends
/// move with them.
void clamp_future_times(PoolState& state, double now_s);

}  // namespace remuda::pool
