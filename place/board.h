// Board: at most 16 devices that are placed on together, by number, and the search among their sets. Internal to place.
#pragma once

#include <vector>

#include "place/left.h"
#include "place/standing.h"
#include "topology/bottleneck.h"

namespace remuda::place {

/// Plain data; bit i of a mask is device i.
struct Board {
  using Mask = topology::RingTable::Mask;

  topology::Speeds speeds;       ///< of the links a ring may use
  topology::Speeds left_speeds;  ///< of the links that count among devices that stay free
  Mask whole = 0;                ///< devices that nobody holds any part of
  Mask cpus = 0;
  std::vector<Mask> models, speed_classes, numa_nodes, pcie_roots;  ///< each a partition of all devices
  std::vector<double> room;                                         ///< of each device, see Fit::room

  size_t size() const { return speeds.size(); }
};

struct Wish {
  Board::Mask candidates = 0;
  int count = 1;
  double share = 1;
  bool must_be_linked = false;  ///< a set without a ring is none
};

struct Found {
  Board::Mask set = 0;
  Standing standing;
};

struct Search {
  std::vector<Found> best;  ///< the best first
  int64_t considered = 0;   ///< sets there are
};

/// Tries every set of `wish.count` candidates and keeps the best `keep`. Exact: no set is better than best.front().
/// `rings` is of board.speeds; null only where count is 1. Adds to `search`.
void search(const Board& board, const topology::RingTable* rings, const Wish& wish, size_t keep, Search& search);

}  // namespace remuda::place
