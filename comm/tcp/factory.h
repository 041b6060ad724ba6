// A communicator over TCP, for ranks on several hosts, and on one where memory cannot be shared.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/rendezvous.h"

namespace remuda::comm::tcp {

std::unique_ptr<Communicator> make(Mesh mesh, Origin origin);

}  // namespace remuda::comm::tcp
