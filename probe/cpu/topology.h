// CpuTopology: the cores and NUMA nodes this process may use, as plain data. Internal to probe/cpu.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace remuda::probe::cpu {

/// The logical CPUs (hardware threads) of one core, ascending.
using Core = std::vector<int>;

struct Node {
  int numa_node = 0;                    ///< the kernel's number
  std::optional<int64_t> memory_bytes;  ///< nothing when it is not known
  std::vector<Core> cores;              ///< never empty
};

struct CpuTopology {
  std::string model;        ///< "CPU" when it is not known
  std::vector<Node> nodes;  ///< ascending; nodes with memory but without cores are left out
};

/// The live machine, restricted to the cores that cgroup and affinity allow this process; or, for tests, the machine
/// that hwloc makes from a synthetic description such as "numa:2 core:4 pu:2".
Result<CpuTopology> read_topology(const std::string& synthetic = "");

}  // namespace remuda::probe::cpu
