// The placement replay: a stream of jobs on one machine, under one policy.
#pragma once

#include <vector>

#include "bench/placement_policy.h"

namespace remuda::bench {

struct ReplayJob {
  int gpus = 1;
  double duration = 0;
  double gap = 0;  ///< from the job before to this one
};

/// Sizes from 1, 2 and 4 (1 five times, 2 three times and 4 twice; on 8 GPUs and more, each once more), at most all
/// GPUs; durations exponential with mean 10, gaps exponential with mean 10 * 2.1 / GPUs / 0.8.
std::vector<ReplayJob> replay_jobs(size_t gpus, size_t jobs, uint64_t seed);

struct ReplayResult {
  double mean = 0;  ///< over jobs of two GPUs and more: ring value / best of that size on the empty machine
  double best = 0;  ///< part of those jobs that got the best
};

/// First come, first served: the head waits until enough GPUs are free, and the next job comes its gap after the head
/// has started.
ReplayResult replay(const ReplayMachine& machine, const std::vector<ReplayJob>& jobs, const Policy& policy);

}  // namespace remuda::bench
