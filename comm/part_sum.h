// PartSum: adds up the own part of a buffer in the order of the ranks, while the other ranks' values of it arrive.
//
// What a peer sends waits in a ring, small enough for the cache, until every rank's values of that place are there. A
// peer that is a whole ring ahead has no room until the others have come: its connection holds it back.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/parts.h"
#include "comm/pieces.h"
#include "comm/reduce.h"

namespace remuda::comm {

class PartSum {
 public:
  /// Adds up `bytes` of each of `in`, in their order; `out` is one of them.
  using Add = void (*)(std::span<const std::byte* const> in, std::byte* out, size_t bytes);

  /// Begins a sum over `ranks` ranks, of which this one is number `mine`. `own` holds its values and receives the sum;
  /// each place holds whole elements. Memory is kept from one sum to the next.
  void begin(int mine, int ranks, Pieces<std::byte> own, Add add);

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
  void add_next(size_t bytes);

  int mine_ = 0;
  size_t bytes_ = 0;       // of the part
  size_t ring_bytes_ = 0;  // of each rank
  Add add_ = nullptr;
  Pieces<std::byte> own_;
  std::vector<size_t> got_;
  std::vector<const std::byte*> in_;
  std::vector<Line> rings_;
};

/// PartSum::Add for elements of type T.
template <typename T>
void add_elements(std::span<const std::byte* const> in, std::byte* out, size_t bytes) {
  std::vector<const T*> values;
  values.reserve(in.size());
  for (const std::byte* each : in) values.push_back(reinterpret_cast<const T*>(each));
  auto* const to = reinterpret_cast<T*>(out);
  sum_in_rank_order<T>(values, std::span(&to, 1), bytes / sizeof(T));
}

}  // namespace remuda::comm
