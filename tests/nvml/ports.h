// Ports: which NVLink of a GPU leads where, from how many links each pair is recorded to have.
#pragma once

#include <vector>

#include "tests/nvml/machine.h"

namespace remuda::tests::nvml {

/// The ports of every GPU. GPUs that fabric links connect form an island. An island is wired through switches of its
/// own when the recording says so, when it has six GPUs or more with the same number of links between all of them, or
/// when direct wires would need more links than a GPU can have. Otherwise each pair gets its own wires, and each GPU
/// one link more that is not active, as on a board whose bridge is absent.
std::vector<std::vector<Port>> ports_of(const Machine& machine);

}  // namespace remuda::tests::nvml
