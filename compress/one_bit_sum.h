// OneBitSum: adds values up over ranks, each of which sends one bit per value and receives as much: 1/31 of an
// all_reduce of float32.
//
// As in 1-bit Adam (Tang et al. 2021, arXiv:2102.02888, algorithm 1): each rank packs its values (signs.h) and sends
// every other one the part that this owns; the owner adds its part up, packs the sum, and sends it to all. What packing
// has lost is added to the next values: on each rank of its own values, on the owner of the sum. So over all calls
//
//   what was given to all  +  what ranks and owners still owe  =  the sum of all values
//
// and every rank ends with the same bits.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"

namespace remuda::compress {

class OneBitSum {
 public:
  /// Collective. Sums of `count` values. The communicator outlives it.
  static Result<OneBitSum> create(comm::Communicator& ranks, size_t count);

  /// Adds this rank's values of that range to `to`, which has as many. Called for one chunk after the other.
  using AddTo = std::function<void(comm::Chunk range, std::span<float> to)>;

  /// Collective. The sum, packed: the same bytes on every rank, until the next call. `used`, which is the same on all
  /// ranks, is that of signs.h. After an error nothing is as it was.
  Result<std::span<const std::byte>> add_up(const AddTo& add, std::span<const float> used, uint32_t label);

  /// What this rank still owes of its own values.
  std::span<float> owed() { return owed_; }
  /// What it still owes of the sums in the range that it owns.
  std::span<float> owed_of_sum() { return owed_of_sum_; }
  comm::Chunk own() const;

 private:
  OneBitSum(comm::Communicator& ranks, size_t count, std::span<std::byte> sum);

  comm::Communicator* ranks_;
  comm::Parts chunks_;  ///< how these are divided among the owners
  std::vector<float> owed_, owed_of_sum_;
  std::vector<std::byte> packed_;  ///< own values, for their owners
  std::vector<std::byte> theirs_;  ///< everybody's, of the own part
  std::span<std::byte> sum_;       ///< packed, in memory of the communicator
};

}  // namespace remuda::compress
