// Ping-pong: how long the smallest message takes from one core to another, measured by one that goes to and fro.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"

namespace remuda::measure {

/// The message, in memory that both sides share: 0 at first, and again afterwards. It has two cache lines to itself, as
/// processors fetch them in twos.
struct alignas(128) PingPongMessage {
  std::atomic<uint64_t> number;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "two processes share it");

/// Both sides call it at the same time, one as side 0, the other as side 1, from different cores; side 0 decides when
/// that `seconds` have passed. Returns to side 0 the median time of one message, half of a round trip, in seconds; to
/// side 1 always 0. An error when the other side does not answer for ten seconds.
Result<double> ping_pong_s(PingPongMessage& message, int side, double seconds);

}  // namespace remuda::measure
