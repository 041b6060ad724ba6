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

/// Binds all threads of a process to these CPUs, as far as the kernel permits.
void bind(int pid, const std::vector<int>& cores);

/// An Affinity prepared before a fork: apply() makes only system calls.
class AffinityPlan {
 public:
  explicit AffinityPlan(const Affinity& affinity);
  /// Applies to the calling thread, its children and the program it executes; new memory is taken from the nodes while
  /// they have free memory. False, with errno, where it may use none of the CPUs.
  bool apply() const;

 private:
  void prefer_nodes() const;
  std::vector<unsigned long> cores_, nodes_;  ///< bit masks, in the kernel's format
};

}  // namespace remuda::process
