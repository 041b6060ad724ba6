// The CPUs of each rank of a training run, one rank for each device. Pure.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda::confine {

struct RankCores {
  std::vector<int> cores;  ///< logical CPUs, ascending; a rank of a GPU may share them with those of other GPUs
  size_t threads = 1;      ///< as many as keep all ranks together from using a CPU twice
};

/// For `devices`, ids of the inventory, in their order, one for each rank: a device that ranks share comes several
/// times. `allowed` is what this process may use.
///
/// A CPU device computes on its own cores. A GPU's rank only feeds its GPU: it gets the CPUs nearest to it that no CPU
/// device of the run has. Where a CPU device takes all of those, it leaves two for each such GPU, as long as it keeps
/// the larger half.
std::vector<RankCores> rank_cores(const Inventory& inventory, const std::vector<std::string>& devices,
                                  const std::vector<int>& allowed);

}  // namespace remuda::confine
