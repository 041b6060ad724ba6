// Exchange: the messages of one collective call, over the data connections, with all peers at once.
//
// One message goes to each peer and one comes from it: the description of the call, then values for its receiver to add
// up, then values that are finished. A receiver compares the description with its own before it takes a byte of data.
// Nothing waits for a meeting of all ranks, and what an owner has added up leaves while the rest still arrives. All
// sockets are sent to and received from as they can, so that no two ranks wait for each other's buffers. Rounds in
// which each rank sends to one other would send no byte less (route/plan.h), and each round would wait for its slowest.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/call.h"
#include "comm/link.h"
#include "comm/part_sum.h"
#include "comm/peers.h"
#include "comm/pieces.h"

namespace remuda::comm {

/// The data to and from one peer, behind the description of the call.
struct Flow {
  Pieces<const std::byte> values;    ///< goes first: for the peer to add up
  Pieces<const std::byte> finished;  ///< goes then, as far as it is ready
  Pieces<std::byte> in;              ///< where the peer's finished values go; those to be added up come before them
};

class Exchange {
 public:
  /// Between `ranks`, in the order of their numbers, this one among them; `links` are the data connections, by rank.
  /// All of them outlive this. Once `stop` is readable, if it is a descriptor, run() fails.
  Exchange(const Call& call, std::span<const int> ranks, std::span<const Link> links, Peers& peers, int stop = -1);

  Exchange(const Exchange&) = delete;

  int ranks() const { return static_cast<int>(lanes_.size()); }
  /// This rank's number among those that take part.
  int mine() const { return mine_; }
  /// That of the rank with this number; the own one stays empty.
  Flow& flow(int number) { return lanes_[size_t(number)].flow; }

  /// Every peer's values go to `sum`, and its done bytes are ready: the finished bytes of every flow are the sum's own.
  void add_up(PartSum& sum);
  /// Fills the flows: the bytes of rank number `source` go to all. Of more than a little, each rank gets a part from
  /// the source and passes it on.
  void broadcast(std::span<std::byte> bytes, int source);

  /// Errors: a peer that makes another call, is gone, or does not answer before the deadline.
  Result<void> run(double deadline_s);
  /// What run() has sent, descriptions of the call included.
  uint64_t sent_bytes() const { return sent_bytes_; }

 private:
  struct Lane {
    int number = 0;
    int rank = 0;
    bool begun = false;    // something was to be sent
    size_t described = 0;  // bytes of the own description that were sent
    Call theirs;
    size_t got = 0;  // bytes of theirs
    Flow flow;
  };

  bool is_peer(const Lane& lane) const { return lane.number != mine_; }
  bool has_all_from(const Lane& lane) const;
  bool done(const Lane& lane) const;
  std::span<const std::byte> next_out(const Lane& lane) const;
  std::span<std::byte> room(Lane& lane);
  Result<void> took(Lane& lane, size_t bytes);
  Result<size_t> receive(Lane& lane);
  Result<size_t> send(Lane& lane);
  Result<size_t> advance(Lane& lane);
  Result<bool> advance_all();
  tl::unexpected<Error> ended(const Lane& lane);
  const Lane* waited_for() const;
  Result<void> wait(double deadline_s);

  const Call& call_;
  std::span<const Link> links_;
  Peers& peers_;
  int stop_;
  std::vector<Lane> lanes_;
  int mine_ = 0;
  PartSum* sum_ = nullptr;
  std::function<size_t()> ready_;  // how many of the finished bytes may be sent; all, unless set
  uint64_t sent_bytes_ = 0;
};

}  // namespace remuda::comm
