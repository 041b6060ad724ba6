// Policies that the placement replay compares. A policy picks `count` of the free GPUs.
#pragma once

#include <functional>

#include "bench/placement_machine.h"

namespace remuda::bench {

using Policy = std::function<Mask(Mask free, int count)>;

/// Each free GPU as likely as another; from a generator of its own.
Policy random_policy(uint64_t seed);
/// The lowest numbers: what single-node tools do.
Policy index_policy();
/// The best-effort rule of Kubernetes' device plugin, from its description: each pair has points by its links, a set
/// the sum of its pairs'. Among the ways to cut all free GPUs into sets of `count` (the last one smaller where that
/// does not come out even), it takes the first with the highest sum, and of that the best set; one GPU is the lowest
/// number. Where the small set is the best one, the original hands out fewer GPUs than asked for; that counts as index
/// order. `machine` must outlive it.
Policy pair_score_policy(const ReplayMachine& machine);
/// remuda's. `machine` must outlive it.
Policy remuda_policy(const ReplayMachine& machine);

}  // namespace remuda::bench
