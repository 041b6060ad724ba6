// Trial: how long hosts take to send each other what a step has, found by doing it: with values of no meaning, and no
// more of them than take a moment; what a model has beyond these is in proportion.
#pragma once

#include <optional>
#include <span>

#include "base/result.h"
#include "comm/communicator.h"
#include "compress/low_rank.h"

namespace remuda::compress {

struct TrialOptions {
  std::span<const Shape> shapes;  ///< of all parameters
  size_t rank = 4;                ///< of powersgd
  bool powersgd = true, one_bit = true;
  size_t most_values = 4 << 20;  ///< that are packed in the trial
};

struct Trial {
  double latency_s = 0;         ///< of a call that adds up next to nothing
  double seconds_per_byte = 0;  ///< beyond that, of what is added up
  /// Of all values: seen to be finite, packed, sent, unpacked, and a step made with them.
  std::optional<double> powersgd_s, one_bit_s;

  double sending_s(double bytes, int calls) const { return calls * latency_s + bytes * seconds_per_byte; }
};

/// Collective; the same on every rank, as the first has measured it. `hosts`: one rank of each. An error of the system
/// where a rank has no memory for it.
Result<Trial> try_exchanges(comm::Communicator& hosts, const TrialOptions& options, uint32_t label);

}  // namespace remuda::compress
