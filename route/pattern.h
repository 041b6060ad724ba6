// Pattern: an all-reduce as a list of moves between positions, before anybody is told which device stands where.
//
// The buffer is cut into equal chunks. In a step each move sends what its sender had when the step began, so moves of a
// step need no order; the next step may need what this one brought.
#pragma once

#include <cstddef>
#include <vector>

#include "device/words.h"

namespace remuda::route {

enum class Algorithm {
  doubling,      ///< all exchange the whole with one other, at distances 1, 2, 4 ..
  tree,          ///< up a binomial tree to the first, and down again
  direct,        ///< each sends every other the part that the other adds up, and gets the sums of theirs
  halving,       ///< halves of halves to others at half the distance each, and back
  ring,          ///< parts go around, twice
  two_rings,     ///< halves go around in both directions
  islands,       ///< adds up on each island directly, then across them, then back
  island_rings,  ///< the same, with a ring on each island
};

struct Move {
  size_t from = 0, to = 0;    ///< positions
  size_t begin = 0, end = 0;  ///< chunks
  bool adds = false;          ///< the receiver adds them to its own; else it takes them in their place

  size_t chunks() const { return end - begin; }
  bool operator==(const Move&) const = default;
};

using Step = std::vector<Move>;

struct Pattern {
  Algorithm algorithm = Algorithm::ring;
  size_t ranks = 0;
  size_t chunks = 1;
  std::vector<Step> steps;
  /// The positions in groups of so many: only devices within a group are to change places, as others must not, or it
  /// would change nothing.
  std::vector<size_t> groups;
};

/// Each rank sends 2 (n-1)/n of the whole, less than which no schedule can (Patarasuk and Yuan 2009), in 2 (n-1) steps.
Pattern ring(size_t ranks);
/// The same in two rings of half as much, one in each direction. Three ranks or more.
Pattern two_rings(size_t ranks);
/// 2 log2(n) steps with the whole, rounded up.
Pattern tree(size_t ranks);
/// log2(n) steps with the whole; ranks beyond a power of two give theirs to others before, and get the sum after.
Pattern doubling(size_t ranks);
/// 2 log2(n) steps, 2 (n-1)/n of the whole (Rabenseifner 2004); ranks beyond a power of two as above.
Pattern halving(size_t ranks);
/// 2 steps, 2 (n-1)/n of the whole, n-1 transfers from each at a time: what ranks do over TCP.
Pattern direct(size_t ranks);
/// Islands of these sizes, two or more, in the order of the positions. As many members of each as the smallest has own
/// a part. From each of k islands to the others goes 2 (k-1)/k of the whole.
Pattern islands(const std::vector<size_t>& sizes);
/// The same with rings on the islands. All of one size, three or more.
Pattern island_rings(const std::vector<size_t>& sizes);

}  // namespace remuda::route

template <>
struct remuda::Words<remuda::route::Algorithm> {
  using enum route::Algorithm;
  static constexpr std::array table{std::pair{doubling, "doubling"}, std::pair{tree, "tree"},
                                    std::pair{direct, "direct"},     std::pair{halving, "halving"},
                                    std::pair{ring, "ring"},         std::pair{two_rings, "two_rings"},
                                    std::pair{islands, "islands"},   std::pair{island_rings, "island_rings"}};
};
