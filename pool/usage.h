// Usage: what users have had lately, and how it fades.
//
// Each second of each device counts, halved every half-life: a user who holds d devices for t seconds has had
//   integral over s from 0 to t of d * 2^(-s / H) ds = d * H / ln 2 * (1 - 2^(-t / H))
// when they end. So no time span, however wrong the clock, counts more than H / ln 2 seconds per device.
#pragma once

#include <string>

#include "pool/job.h"

namespace remuda::pool {

struct Policy {
  double half_life_s = 7 * 86400;  ///< of usage
  double patience_s = 900;         ///< later jobs may pass a waiting one for so long; then devices are kept for it
};

/// What a device held from `since_s` to `now_s` counts at `now_s`.
double faded_seconds(double since_s, double now_s, const Policy& policy);

/// Device seconds that the user had, decayed; running jobs count up to now.
double usage_of(const PoolState& state, const std::string& user, const Policy& policy, double now_s);

/// Adds what the job's leases count to its user's usage.
void charge(PoolState& state, const Job& job, const Policy& policy, double now_s);

/// Moves what lies in the future, after the clock was set back, to now: arrivals, starts and leases, whose ends move
/// with them, and usage.
void forgive_clock(PoolState& state, double now_s);

}  // namespace remuda::pool
