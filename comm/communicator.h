// Communicator: the collective operations of the ranks of one job.
//
// Every call is collective: all ranks make the same calls in the same order, from one thread at a time. Each message
// carries its sequence number, label, kind and byte count; ranks that disagree get an error that names both. A rank
// that dies, or is silent for longer than the timeout, gives an error that names it (ErrorKind::lost_peer). After an
// error the communicator cannot be used any more.
//
// What one rank has for another goes through a channel of the two: comm/channel.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "comm/elements.h"
#include "comm/encryption.h"
#include "comm/parts.h"
#include "comm/terms.h"

namespace remuda::comm {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  ///< this one's number among the size() ranks that take part
  virtual int size() const = 0;
  /// "shared memory", "tcp", "tcp, encrypted", "shared memory, tcp between hosts" or "shared memory, encrypted tcp
  /// between hosts".
  virtual std::string transport() const = 0;

  /// The ranks by whom they reach through memory, without a connection: the same on every rank, as Hosts has it. With
  /// "tcp" each is alone.
  virtual std::vector<std::vector<int>> hosts() const = 0;

  /// Memory that the transport can reach without a copy: zeroed, aligned to 64 bytes, owned by the communicator and
  /// valid as long as it lives. Collective: all ranks ask for the same sizes.
  virtual Result<std::span<std::byte>> allocate(size_t bytes) = 0;

  /// Adds up `values` over all ranks, in place: every rank ends with the same bits. The order of the additions is that
  /// of the ranks; where hosts are joined by TCP, the ranks of each host are added up first, and then these sums in the
  /// order of the hosts' lowest ranks. So shared memory and TCP alone give the same bits, and so does every run on the
  /// same hosts. `values` lies in allocate()d memory, at the same place in it on every rank; they are not of 16 bits.
  /// `label` says what is reduced (a bucket's number, say).
  virtual Result<void> all_reduce(Values values, uint32_t label) = 0;

  /// The first half of an all_reduce: adds up `values` over all ranks, in its order; afterwards each rank has the sum
  /// of its own part in `sum`, with the same bits as all_reduce gives it. Values of 16 bits are added up in float32,
  /// and so is their sum: what they lose is what the caller lost when rounding them. The values lie where those of
  /// all_reduce do, with the same parts on every rank; `sum` in any memory that they do not overlap, or in place.
  /// `silent`, the same on every rank: those whose values are zero, whatever they hold: they are neither sent nor read.
  /// Empty: none.
  virtual Result<void> reduce_scatter(Values values, const Parts& parts, Values sum, uint32_t label,
                                      const std::vector<bool>& silent = {}) = 0;
  /// In place, for values that are not of 16 bits. What is in the other parts then is not specified.
  Result<void> reduce_scatter(Values values, const Parts& parts, uint32_t label) {
    return reduce_scatter(values, parts, values.part(parts.of(rank())), label);
  }

  /// The second half: every rank's own part goes to all, in place. The same memory as for all_reduce; `parts` are in
  /// bytes here.
  virtual Result<void> gather_parts(std::span<std::byte> bytes, const Parts& parts, uint32_t label) = 0;

  /// Copies rank `root`'s bytes to all. Any memory.
  virtual Result<void> broadcast(std::span<std::byte> bytes, int root, uint32_t label) = 0;

  /// Every rank passes `mine` (the same size everywhere) and receives all of them in rank order: `all` is size() times
  /// as long. Any memory.
  virtual Result<void> all_gather(std::span<const std::byte> mine, std::span<std::byte> all, uint32_t label) = 0;

  /// Every rank has a part of `mine` for each: parts.of(r) of its bytes goes to rank r. `theirs` gets what is for this
  /// one, in the order of the ranks: size() times its own part. The same parts on every rank. Any memory.
  virtual Result<void> all_to_all(std::span<const std::byte> mine, const Parts& parts, std::span<std::byte> theirs,
                                  uint32_t label) = 0;

  /// Returns when every rank has called it.
  virtual Result<void> barrier(uint32_t label) = 0;

  /// A communicator of their own for some of the ranks, or all: `ranks` of this one, each once, are 0, 1, ... of the
  /// new one, in this order. All ranks call it with the same list; those that are not in it get none (nullptr). It has
  /// connections, memory and call numbers of its own and outlives this one: two threads may use the two at the same
  /// time. Transport, encryption and timeout are chosen as here. Its errors name a rank by the number that it has in
  /// the job (ConnectOptions::rank), as those of all communicators do.
  virtual Result<std::unique_ptr<Communicator>> split(std::span<const int> ranks, uint32_t label) = 0;

  /// Bytes that this rank's calls have sent to other ranks over connections so far, descriptions of the calls included;
  /// 0 in shared memory.
  virtual uint64_t sent_bytes() const = 0;

  /// From the next call on: the longest wait for a peer in one call, in place of ConnectOptions::timeout_s. Not
  /// collective, but a rank with a shorter timeout stops waiting for the others too early: set the same on all.
  virtual void set_timeout(double seconds) = 0;
};

struct ConnectOptions {
  int rank = 0;
  int size = 1;
  std::string master_address = "127.0.0.1";  ///< where rank 0 listens
  int master_port = 0;
  std::string bind_address = "127.0.0.1";  ///< where this rank listens for ranks above it
  Fd listener;                             ///< rank 0 only: the master socket, where it is bound already
  std::string secret;                      ///< both ends of each connection prove that they know it (HMAC-SHA256)
  Encryption encryption = Encryption::beyond_loopback;  ///< of connections; the same on all ranks
  Terms terms;       ///< names and values that must be the same on all ranks; see terms.h
  std::string host;  ///< this rank's host: ranks of one name share memory; empty: what the system says
  enum class Transport { automatic, shared_memory, tcp } transport = Transport::automatic;
  int streams = 1;                  ///< connections for data to each peer, 1 to 16; the same on all ranks
  size_t stripe_bytes = 512 << 10;  ///< of a call that each of them carries at least; the same on all ranks
  double timeout_s = 300;           ///< longest wait for a peer in one call
  double connect_timeout_s = 60;
  bool first_come =
      false;  ///< rank 0 only: of two with the same rank the first one stays, and the other is turned away
};

/// Connects to the other ranks of the job and returns the communicator they share. `automatic` takes shared memory
/// where ranks are on one host, and TCP between hosts; TCP alone where ranks of a host cannot reach each other's
/// memory, or all are alone. All ranks must ask for the same. A wrong secret, two processes with the same rank, a
/// different world size and different terms are errors that name the address and the ranks. A single rank needs no
/// secret; ranks that connect beyond loopback need one of kLeastSecretBits.
Result<std::unique_ptr<Communicator>> connect(ConnectOptions options);

}  // namespace remuda::comm
