// What the two cores allow over a socket: each process sends so many bytes and receives as many at the same time, and
// does nothing else with them.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"

namespace remuda::bench {

/// Between the processes of run_pair(), over one connection of loopback; seconds for each of `sizes`, timed as repeat.h
/// says.
Result<std::vector<double>> time_raw_exchange(std::span<const size_t> sizes);

}  // namespace remuda::bench
