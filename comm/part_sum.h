// PartSum: adds up the own part of a buffer in the order of the ranks, while the other ranks' values of it arrive.
//
// What a peer sends waits in a ring, small enough for the cache, until every rank's values of that place are there. A
// peer that is a whole ring ahead has no room until the others have come: its connection holds it back.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/elements.h"
#include "comm/pieces.h"

namespace remuda::comm {

class PartSum {
 public:
  /// Begins a sum of `type` over `ranks` ranks, of which this one is number `mine`. `own` holds its values, in places
  /// of whole elements. The sum goes to `sum`, or into `own` itself if that is null. Of ranks that are `silent`, one
  /// per rank or none of them, nothing comes, and nothing is read. Memory is kept from one sum to the next.
  void begin(int mine, int ranks, Element type, Pieces<std::byte> own, std::byte* sum = nullptr,
             const std::vector<bool>& silent = {});

  /// Where the next values of rank number `rank` go; empty when there is no room, or none are left to come.
  std::span<std::byte> room(int rank);
  /// `bytes` have arrived in room(rank).
  void take(int rank, size_t bytes);
  /// Bytes that are still to come from a rank.
  size_t left(int rank) const { return bytes_ - got_[size_t(rank)]; }
  /// So many bytes of `own`, from its beginning, are the sum.
  size_t done() const { return own_.taken(); }

 private:
  struct alignas(kCacheLine) Line {
    std::byte bytes[kCacheLine];
  };
  std::byte* ring(int rank);
  void add_what_is_there();
  void add_next(size_t bytes);

  int mine_ = 0;
  size_t bytes_ = 0;       // of the part
  size_t ring_bytes_ = 0;  // of each rank
  Element type_ = Element::bytes;
  std::byte* sum_ = nullptr;
  Pieces<std::byte> own_;
  std::vector<size_t> got_;
  std::vector<bool> silent_;
  std::vector<const std::byte*> in_;
  std::vector<Line> rings_;
};

}  // namespace remuda::comm
