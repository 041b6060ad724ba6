// Streams: the data connections of a communicator, one or several to each peer, and the calls that go over them.
//
// One connection is no faster than the core that encrypts it, nor than TCP's window allows. So a large call is cut into
// stripes, one for each stream, which are exchanged at the same time, by a thread each, or one after the other where
// the system has no thread for them. Every piece of a call's data is cut in the same way, so that neither who adds up
// what nor in which order depends on the number of streams: the bits are those of one. Each stripe describes the call,
// and a failure of one ends all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/file.h"
#include "comm/exchange.h"
#include "comm/parts.h"

namespace remuda::comm {

/// What one stream carries of a call.
class Stripe {
 public:
  Stripe(Exchange& exchange, PartSum& sum, int number, int count)
      : exchange(exchange), sum(sum), number_(number), count_(count) {}

  Exchange& exchange;
  PartSum& sum;  ///< for Exchange::add_up()

  /// Its part of `bytes`: between two cache lines of them, so of whole elements.
  Chunk chunk_of(size_t bytes) const { return even_parts(count_, bytes, 1).of(number_); }
  template <typename Byte>
  std::span<Byte> of(std::span<Byte> bytes) const {
    return part_of(bytes, chunk_of(bytes.size()));
  }

 private:
  int number_, count_;
};

/// One call at a time, from any one thread. `peers` outlives it.
class Streams {
 public:
  /// `links` by stream, then by rank. A stream gets at least `stripe_bytes` of a call, except the first one.
  Streams(std::vector<std::vector<Link>> links, size_t stripe_bytes, Peers& peers);

  /// Makes one call between `ranks`, in the order of their numbers: `fill` says of each stripe what goes to each peer
  /// and comes from it. `bytes` is the size of the data, the same on all ranks. Errors: those of Exchange::run(); a
  /// rank that had no descriptor left when the streams were made. After one there are no further calls.
  Result<void> run(const Call& call, std::span<const int> ranks, size_t bytes, double deadline_s,
                   const std::function<void(Stripe&)>& fill);

  bool encrypted() const;
  /// What all calls have sent, their descriptions included.
  uint64_t sent_bytes() const { return sent_bytes_; }
  /// Sends nothing more.
  void hang_up() const;

 private:
  std::vector<std::vector<Link>> links_;
  size_t stripe_bytes_;
  Peers& peers_;
  std::vector<PartSum> sums_;  // by stream
  Fd stop_;                    // readable once a stripe has failed
  uint64_t sent_bytes_ = 0;
};

}  // namespace remuda::comm
