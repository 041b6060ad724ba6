// Two processes, each on a core of its own.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"

namespace remuda::bench {

/// The cores the pair runs on: the first two this process may use, twice the same if there is only one.
std::vector<int> pair_cores();

/// Keeps the calling thread on one core.
void pin_to(int core);

/// Forks rank 0 and 1, pinned, and returns what `body` returned on rank 0. An error when either fails.
Result<std::vector<double>> run_pair(const std::function<Result<std::vector<double>>(int rank)>& body);

}  // namespace remuda::bench
