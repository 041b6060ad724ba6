// How cores become CPU devices. Pure: nodes in, core sets out. Internal to probe/cpu.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "probe/cpu/topology.h"

namespace remuda::probe::cpu {

/// The cores of one device.
struct CoreSet {
  std::vector<int> pus;                 ///< logical CPUs, ascending
  std::vector<int> numa_nodes;          ///< the nodes of its cores, ascending; more than one when it spans nodes
  std::optional<int64_t> memory_bytes;  ///< its cores' part of the memory of each of those nodes, when all are known
};

/// Splits the cores over `devices` sets of nearly the same size, in node order; a core is never split.
///   0: one set per node.
///   A multiple of the number of nodes: no set spans two nodes. Nodes of unlike size get sets in proportion.
///   Any other number: sizes differ by one core at most, so some sets span neighbouring nodes.
/// An error that says how many are possible when there are fewer cores than `devices`.
Result<std::vector<CoreSet>> split_cores(const std::vector<Node>& nodes, int devices);

}  // namespace remuda::probe::cpu
