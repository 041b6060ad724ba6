// The least time an all-reduce in place over two processes can take on this machine.
//
//   limit(S) = 2 h + 4 S / B(S)
//
// S: bytes per rank. Each of the two buffers must be read once and written once: 4 S bytes of memory traffic.
// B(S): what the same two cores reach together when each reads and writes S bytes of its own, `a[i] = s * a[i]`, at the
// same time as the other: B = 4 S / t, so that 4 S / B is t itself. Nothing is shared there, so at sizes that fit into
// a core's own cache the limit cannot be reached: in an all-reduce half of the data has to change cores. h: the time
// for a cache line to go from one core to the other. Every all-reduce needs two: a rank's data must be known to be
// there before it is read, and the sum before it is used.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace remuda::bench {

struct Limit {
  double seconds;
  double bandwidth;  ///< B, bytes per second of both cores together
};

/// Measures on the cores of run_pair(); one limit per size.
Result<std::vector<Limit>> measure_limits(std::span<const size_t> sizes);

}  // namespace remuda::bench
