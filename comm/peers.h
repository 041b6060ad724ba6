// Peers: signs of life over the control connections.
//
// A rank that meets an error says goodbye and names the rank it lost, so that all ranks name the rank that died and not
// the one that told them. A connection that ends without a goodbye is a rank that died or left.
#pragma once

#include <cstdint>
#include <optional>
#include <poll.h>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "comm/message.h"

namespace remuda::comm {

class Peers {
 public:
  Peers(int rank, std::vector<Fd> control);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(control_.size()); }

  /// Reads what has come, without waiting. An error when a peer gave up in call `sequence` or before because of a lost
  /// rank. (One that gave up in a later call has done its part in this one.)
  Result<void> listen(uint64_t sequence);
  /// Whether the peer will take part no more; what it did before may still be on its way.
  bool gone(int peer) const { return gone_[peer]; }

  /// The cause behind `peer`'s end of connection: waits a moment for its last words.
  Error cause(int peer, const Message& message);

  /// Tells all peers that this rank gave up in call `sequence` because of `culprit` (its own rank: for a reason of its
  /// own).
  void goodbye(int culprit, uint64_t sequence);

  /// Adds the connections of those not gone, to be polled for anything to read.
  void watch(std::vector<pollfd>& polled) const;

 private:
  struct Told {
    uint64_t sequence;
    Error error;
  };
  void listen_to(int peer);

  int rank_;
  std::vector<Fd> control_;
  std::vector<bool> gone_;
  std::optional<Told> told_;  ///< the first goodbye that named a lost rank
};

/// "rank 2 went away during barrier #3 (...)".
Error lost_rank(int peer, std::string_view what, const Message& message);

}  // namespace remuda::comm
