// Peers: which of the other ranks are still connected, as seen over the control connections.
//
// A rank that has an error reports it to all others: which rank it lost, so that all name the rank that died and not
// the one that reported it; or else the error's own sentence, so that those who cannot see the cause know it, too. A
// connection that ends without a report is a rank that died or left.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <poll.h>
#include <vector>

#include "base/result.h"
#include "comm/call.h"
#include "comm/link.h"

namespace remuda::comm {

/// The streams of a call use it at the same time, each from its thread.
class Peers {
 public:
  /// `control` by rank; a rank without a link does not take part.
  Peers(int rank, std::vector<Link> control);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(control_.size()); }

  /// Reads the reports that have arrived, without waiting. An error when a peer gave up in call `sequence` or before
  /// because of a lost rank. (One that gave up in a later call has done its part in this one; what another reason means
  /// for this rank shows when the peer's data is missing.)
  Result<void> check(uint64_t sequence);
  /// Whether the peer no longer takes part; data that it sent before may still arrive.
  bool gone(int peer) const;

  /// Why `peer`'s connection has ended: waits a moment for its report. Without one, it is `what` the peer did.
  Error cause(int peer, const Call& call, std::string_view what = "went away");

  /// Reports to all peers that this rank gave up in call `sequence` because of `error`.
  void report_failure(const Error& error, uint64_t sequence);

  /// The socket of the connection to a peer.
  int socket_of(int peer) const { return control_[size_t(peer)].get(); }

  /// Adds the connections of the peers that are not gone, to be polled for reading.
  void watch(std::vector<pollfd>& polled) const;

 private:
  struct Reported {
    uint64_t sequence;
    Error error;
  };
  /// Returns what gone() does then.
  bool read_from(int peer);

  int rank_;
  std::vector<Link> control_;
  mutable std::mutex mutex_;  ///< of what follows, and of reading from `control_`
  std::vector<bool> gone_;
  std::optional<Reported> reported_;  ///< the first report that named a cause
};

}  // namespace remuda::comm
