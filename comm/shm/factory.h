// Communicators over shared memory: for processes of one host, and for those of several, whose hosts are joined by TCP.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/hosts.h"
#include "comm/rendezvous.h"

namespace remuda::comm::shm {

/// Collective. Takes the mesh's control connections when it succeeds. ErrorKind::failed: all ranks have agreed that
/// some rank cannot reach rank 0's memory, and the mesh can be used for another transport. With ErrorKind::lost_peer it
/// cannot.
Result<std::unique_ptr<Communicator>> make(Mesh& mesh, double connect_timeout_s, double timeout_s);

/// The same for ranks of several hosts: one rank of each speaks with the other hosts.
Result<std::unique_ptr<Communicator>> make_between_hosts(Mesh& mesh, const Hosts& hosts, double connect_timeout_s,
                                                         double timeout_s);

}  // namespace remuda::comm::shm
