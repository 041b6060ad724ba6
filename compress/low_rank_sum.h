// LowRankSum: adds values up over ranks, each of which sends the thin sides of matrices in place of these, and what is
// no matrix, or a small one, as it is.
//
// PowerSGD (Vogels et al. 2019, arXiv:1905.13727, algorithms 1 and 2): two all_reduces, of the left and of the right
// sides (low_rank.h). What a rank's own values have beyond that, it owes, and adds to its next ones. So over all calls
//
//   what was given to all  +  what ranks still owe  =  the sum of all values
//
// and every rank ends with the same bits. A rank owes what its *own* values lack, and not, as PyTorch's powerSGD_hook
// has it, what they lack of an equal part of the sum: where ranks have unlike shares, that would grow with every call.
// The right sides are kept for the next call ("warm start").
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "compress/low_rank.h"

namespace remuda::compress {

/// A matrix that begins at this one of the values.
struct Placed {
  Shape shape;
  size_t begin = 0;
};

/// One after the other.
std::vector<Placed> in_a_row(std::span<const Shape> shapes);

class LowRankSum {
 public:
  /// Collective. Of `count` values, of which each matrix has a range of its own; what is in none is left alone. With
  /// sides of `rank` vectors; what is no matrix has one column. The communicator outlives it.
  static Result<LowRankSum> create(comm::Communicator& ranks, std::span<const Placed> matrices, size_t count,
                                   size_t rank);

  /// Collective. In place of `values`: the sum over ranks of these times `factor`, and of what they owe, as far as the
  /// sides can say it. After an error nothing is as it was. A single rank sends nothing and owes nothing.
  Result<void> add_up(std::span<float> values, float factor, uint32_t label);

  /// What this rank still owes of its own values.
  std::span<float> owed() { return owed_; }
  /// Values that the ranks add up in a call, in place of all.
  size_t sent() const { return left_.size() + right_.size(); }

 private:
  struct Part {
    size_t begin = 0, count = 0;  ///< of the values
    size_t rank = 0;              ///< 0: as they are, in place of a left side
    comm::Chunk left, right;      ///< of the sides of all
  };
  LowRankSum(comm::Communicator& ranks, std::span<const Placed> matrices, size_t all, size_t rank);
  void project_all();
  void project_back_all();
  void restore_all(std::span<float> values);

  comm::Communicator* ranks_;
  std::vector<Part> parts_;
  std::vector<float> owed_;
  size_t left_count_ = 0, right_count_ = 0;
  std::span<float> left_, right_;  ///< in memory of the communicator
};

}  // namespace remuda::compress
