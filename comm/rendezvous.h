// Rendezvous: how the ranks of a job find each other.
//
// Rank 0 listens at the master address. Every other rank listens at an address of its own, connects to rank 0 and sends
// this address; once all have connected, rank 0 sends the list to all, and each rank connects to those below it. Every
// connection starts with the handshake. Some ranks of the job meet in the same way for a group of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/file.h"
#include "comm/communicator.h"
#include "comm/link.h"
#include "comm/wire.h"

namespace remuda::comm {

/// Authenticated connections to every peer, by rank: one for control, and one for data of each stream. Those of the own
/// rank, and of ranks of the job that do not take part, are empty.
struct Mesh {
  Mesh() = default;
  /// Without connections yet.
  Mesh(int rank, int size, std::vector<int> ranks, int streams = 1);

  int rank = 0;
  int size = 1;  ///< of the job
  std::vector<Link> control;
  std::vector<std::vector<Link>> data;  ///< by stream
  std::vector<int> ranks;               ///< those that take part; the first one leads

  int leader() const { return ranks.front(); }
  bool leads() const { return rank == leader(); }
  std::span<const int> followers() const { return std::span(ranks).subspan(1); }
  /// This rank's place in `ranks`.
  int number() const;
};

/// With what a communicator was connected, for those that split off it.
using Origin = std::shared_ptr<const ConnectOptions>;

/// Where a rank listens. Sent as raw bytes.
struct Contact {
  char address[60] = {};
  uint32_t port = 0;
};
Contact contact_of(const Endpoint& endpoint);
/// Safe for any bytes. Whoever listens at any of its addresses is the other end of `fd`, and reached as by that.
Endpoint endpoint_of(const Contact& contact, int fd);

/// Joins `ranks` of the job, this one among them; the first one listens at the master address. Notes in `options` where
/// this rank has listened (bind_address). Ends within connect_timeout_s, or some seconds later where the terms of two
/// ranks differ and must be exchanged for the error. Errors: a master port in use (usage); ranks that did not connect,
/// by number; another secret, another world size, other terms, a secret too short for the way it goes, or two processes
/// with the same rank (usage), with address and rank; a connection that cannot be encrypted. Takes over
/// options.listener.
Result<Mesh> connect_mesh(ConnectOptions& options, std::vector<int> ranks);
/// Of all ranks of the job.
Result<Mesh> connect_mesh(ConnectOptions& options);

std::vector<int> all_ranks(int size);

}  // namespace remuda::comm
