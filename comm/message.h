// Message: what a rank says about a collective call, so that ranks that disagree find out before data moves.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace remuda::comm {

/// Goes over sockets and through shared memory as it is.
struct Message {
  enum class Kind : uint32_t { allocate, all_reduce_float, all_reduce_double, broadcast, all_gather, barrier };

  Kind kind = Kind::barrier;
  uint32_t label = 0;
  uint64_t sequence = 0;  ///< the how manieth call of this communicator
  uint64_t bytes = 0;
  uint64_t offset = 0;  ///< all_reduce: where the values lie in allocate()d memory
  int32_t root = 0;
  uint32_t reserved = 0;

  bool operator==(const Message&) const = default;
};

/// "all_reduce #12 of float (label 3, 4096 bytes)".
std::string describe(const Message& message);

/// An error that names both ranks and what each is doing, unless both messages are the same.
Result<void> agree(int rank, const Message& mine, int peer, const Message& theirs);

}  // namespace remuda::comm
