// Call: the description of a collective call that a rank sends to the others, so that ranks whose calls differ find out
// before data moves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "comm/elements.h"

namespace remuda::comm {

/// Sent over sockets and through shared memory as raw bytes.
struct Call {
  enum class Kind : uint16_t {
    allocate,
    all_reduce,
    reduce_scatter,
    gather_parts,
    broadcast,
    all_gather,
    all_to_all,
    barrier,
    split
  };

  Kind kind = Kind::barrier;
  Element type = Element::bytes;  ///< of what is added up
  uint32_t label = 0;
  uint64_t sequence = 0;  ///< the number of this call, counted from 1 by each communicator
  uint64_t bytes = 0;     ///< of a split: how many ranks
  uint64_t offset = 0;    ///< of calls in place: where the values lie in allocate()d memory
  int32_t root = 0;       ///< of a broadcast: the rank whose bytes go to all; of a split: the first of the new ones
  uint32_t parts = 0;     ///< a digest of how the values are divided among the ranks; of a split: of the list of ranks

  bool operator==(const Call&) const = default;
};

/// How errors name a label: "label 3", until a program says better. To be called before ranks connect. The names have
/// no parentheses.
void name_labels(std::string (*name)(uint32_t label));

/// "all_reduce #12 of float32 (label 3, 4096 bytes)".
std::string describe(const Call& call);

/// "rank 2 went away during barrier #3 (...)".
Error lost_rank(int peer, std::string_view what, const Call& call);

/// An error that names both ranks and the call of each, unless both calls are the same; where they differ in how values
/// are divided only, it says that. It is the same on both ranks.
Result<void> check_same(int rank, const Call& mine, int peer, const Call& theirs);

}  // namespace remuda::comm
