// Core latency: how long the smallest message takes between two cores, by one that goes back and forth.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"

namespace remuda::measure {

/// In memory that both sides share, zeroed at first; a measurement leaves it as it was.
struct alignas(128) SharedTurn {
  std::atomic<uint64_t> turn;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "two processes share it");

/// Both sides call it at the same time, one as side 0, the other as side 1, from different cores; side 0 decides when
/// it has been `seconds`. Returns the seconds from one core to the other, half of a round trip, the median; to side 1
/// nothing (0). An error when the other side stays away for ten seconds.
Result<double> core_latency_s(SharedTurn& shared, int side, double seconds);

}  // namespace remuda::measure
