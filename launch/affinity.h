// Affinity: the CPUs and the memory nearest to a job's devices.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda {

struct Affinity {
  std::vector<int> cores;  ///< logical CPUs, ascending; empty: as they are
  std::vector<int> nodes;  ///< NUMA nodes, ascending; empty: as they are
  bool operator==(const Affinity&) const = default;
};

/// Of the granted devices: the CPUs and NUMA nodes next to any of them, as far as this process may use those CPUs
/// (`allowed`). A device that does not tell its CPUs leaves the job all of them. Pure.
Affinity affinity(const Inventory& inventory, const std::vector<std::string>& granted, const std::vector<int>& allowed);

/// The logical CPUs this thread may run on.
std::vector<int> allowed_cores();

/// An Affinity made ready before a fork: apply() calls nothing but the kernel.
class AffinityPlan {
 public:
  explicit AffinityPlan(const Affinity& affinity);
  /// Best effort for the calling thread and what it becomes: new memory comes from the nodes while they have any.
  void apply() const;

 private:
  std::vector<unsigned long> cores_, nodes_;  ///< bit masks, as the kernel wants them
};

}  // namespace remuda
