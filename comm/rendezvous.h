// Rendezvous: how the ranks of a job find each other.
//
// Rank 0 listens at the master address. Every other rank listens at an address of its own, connects to rank 0 and sends
// this address; once all have connected, rank 0 sends the list to all, and each rank connects to those below it. Every
// connection starts with the handshake.
#pragma once

#include <vector>

#include "base/file.h"
#include "comm/communicator.h"
#include "comm/link.h"

namespace remuda::comm {

/// Two authenticated connections to every peer, by rank; those of the own rank are empty.
struct Mesh {
  int rank = 0;
  int size = 1;
  std::vector<Link> control;
  std::vector<Link> data;
};

/// Ends within connect_timeout_s, or some seconds later where the terms of two ranks differ and must be exchanged for
/// the error. Errors: a master port in use (usage); ranks that did not connect, by number; another secret, another
/// world size, other terms, a secret too short for the way it goes, or two processes with the same rank (usage), with
/// address and rank; a connection that cannot be encrypted. Takes over options.listener.
Result<Mesh> connect_mesh(ConnectOptions& options);

}  // namespace remuda::comm
