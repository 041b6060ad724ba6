// Communicators over shared memory: for processes of one host, and for those of several, whose hosts are joined by TCP.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/hosts.h"
#include "comm/rendezvous.h"

namespace remuda::comm::shm {

/// Collective. Takes the mesh's control connections when it succeeds. ErrorKind::failed: all ranks have agreed that
/// some rank cannot reach the first one's memory, and the mesh can be used for another transport. With
/// ErrorKind::lost_peer it cannot.
Result<std::unique_ptr<Communicator>> make(Mesh& mesh, const Origin& origin);

/// The same for ranks of several hosts: one rank of each speaks with the other hosts.
Result<std::unique_ptr<Communicator>> make_between_hosts(Mesh& mesh, const Hosts& hosts, const Origin& origin);

}  // namespace remuda::comm::shm
