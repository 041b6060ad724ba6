// Join: the ranks agree whether all can reach rank 0's memory.
#pragma once

#include <memory>

#include "comm/rendezvous.h"
#include "comm/shm/memory.h"

namespace remuda::comm::shm {

/// Over the control connections. ErrorKind::failed on all ranks alike, naming the first rank that cannot.
Result<std::shared_ptr<Memory>> join(const Mesh& mesh, double timeout_s);

}  // namespace remuda::comm::shm
