// Affinity: the CPUs and the memory that a process uses.
#pragma once

#include <vector>

namespace remuda::process {

struct Affinity {
  std::vector<int> cores;  ///< logical CPUs, ascending; empty: as they are
  std::vector<int> nodes;  ///< NUMA nodes, ascending; empty: as they are
  bool operator==(const Affinity&) const = default;
};

/// The logical CPUs this thread may run on.
std::vector<int> allowed_cores();

/// An Affinity made ready before a fork: apply() calls nothing but the kernel.
class AffinityPlan {
 public:
  explicit AffinityPlan(const Affinity& affinity);
  /// For the calling thread and what it becomes; new memory comes from the nodes while they have any. False, with
  /// errno, where it may use none of the CPUs.
  bool apply() const;

 private:
  void prefer_nodes() const;
  std::vector<unsigned long> cores_, nodes_;  ///< bit masks, as the kernel takes them
};

}  // namespace remuda::process
