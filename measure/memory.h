// What memory can do for the cores of a CPU device: copies by all its cores, and loads one after the other.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "measure/team.h"

namespace remuda::measure {

/// Writes all of it, each thread its own part, so that each page lies in the memory nearest to that thread's core.
void touch(Team& team, std::span<std::byte> memory);

/// 10^9 bytes copied per second (each of them read once and written once), the median over `seconds`. Both spans are of
/// one size, larger than the caches.
double copy_gbps(Team& team, std::span<std::byte> to, std::span<const std::byte> from, double seconds);

/// Writes a chain through `memory`: each cache line names the next, in an order that no prefetcher foresees, through
/// all of them. `memory` holds a power of two of bytes, 1 KiB or more, aligned to 8.
void lay_chain(std::span<std::byte> memory);
/// Microseconds for a load of 8 bytes that cannot start before the one ahead of it has ended: along a chain laid there.
double load_latency_us(std::span<const std::byte> chain, double seconds);

/// Size of a buffer that no cache of this machine holds: a power of two, up to four times the last level and 64 MiB at
/// least; less where two for each of `devices` and one more would take over an eighth of the machine's memory.
size_t buffer_bytes(size_t devices);

}  // namespace remuda::measure
