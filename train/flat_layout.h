// FlatLayout: where each parameter lies in the flat tensors, how these are cut into buckets, and which rank owns what.
//
// Parameters lie one after the other in the given order, each from a cache line on, as kernels want their operands (and
// libtorch allocates tensors); what is left free before the next one ("padding") is zero, and belongs to no piece. A
// bucket holds whole parameters, about `bucket_bytes` of them, and ends where the next one begins.
// Each bucket is divided among all ranks, in proportion to their shares of the state, so that every rank owns a part of
// each: it adds that part up, updates it, and keeps the optimizer's state for it (Rajbhandari et al. 2020, "ZeRO",
// arXiv:1910.02054, stage 1). The parameters of each block that is sharded (ShardedBlocks; stage 3) are a bucket of
// their own, after all others. Plain data, the same on every rank; no libtorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/parts.h"

namespace remuda::train {

/// A range of the flat tensors that one rank owns, all of it of one parameter group.
struct Piece {
  comm::Chunk range;
  size_t group = 0;
};

class FlatLayout {
 public:
  struct Options {
    size_t element_bytes = 4;
    double bucket_bytes = 4 << 20;
    std::vector<double> state_shares;  ///< one weight per rank
    std::vector<size_t> blocks;        ///< how many parameters each sharded block has: the last ones of all
    bool equal_parts = false;          ///< buckets are so long that equal shares are equal parts
  };

  /// `sizes`: elements of each parameter; `groups`: the parameter group of each.
  FlatLayout(std::span<const size_t> sizes, std::span<const size_t> groups, const Options& options);

  /// The same with other shares: who owns what.
  void divide(std::span<const double> state_shares);

  /// Elements of all parameters, without padding.
  size_t count() const;
  /// Of the flat tensors if all parameters lay in them, with padding.
  size_t extent() const { return buckets_.empty() ? 0 : buckets_.back().end; }
  /// Parameter groups.
  size_t groups() const;
  size_t parameters() const { return sizes_.size(); }
  /// Where parameter i starts in the flat tensors, and how many elements it has.
  size_t offset(size_t i) const { return offsets_[i]; }
  size_t size(size_t i) const { return sizes_[i]; }
  /// That of the element at this place, or before the padding there.
  size_t parameter_at(size_t element) const;

  size_t buckets() const { return buckets_.size(); }
  /// Of these the ones that every rank holds whole, which come first, with their parameters and extent.
  size_t whole_buckets() const { return buckets_.size() - blocks_; }
  size_t whole_parameters() const { return whole_parameters_; }
  size_t whole_extent() const { return whole_buckets() == 0 ? 0 : buckets_[whole_buckets() - 1].end; }
  size_t blocks() const { return blocks_; }
  size_t bucket_of_block(size_t block) const { return whole_buckets() + block; }
  /// Where each parameter of a block starts, from the start of its bucket.
  std::vector<size_t> offsets_in_block(size_t block) const;
  size_t bucket_of(size_t parameter) const { return bucket_of_[parameter]; }
  /// That of the element at this place.
  size_t bucket_at(size_t element) const;
  comm::Chunk bucket(size_t index) const { return buckets_[index]; }
  /// How a bucket is divided among the ranks; from its start, in elements.
  const comm::Parts& parts(size_t bucket) const { return parts_[bucket]; }
  /// What a rank owns of a bucket, padding included.
  comm::Chunk own(size_t bucket, int rank) const;
  /// The same of one parameter, in the flat tensors; empty where it owns nothing of it.
  comm::Chunk own_of(size_t parameter, int rank) const;
  /// The elements that a rank owns of a bucket, cut at padding and where the parameter group changes.
  std::vector<Piece> pieces(size_t bucket, int rank) const;
  /// How many it owns in all.
  size_t owned(int rank) const;

 private:
  std::vector<size_t> offsets_, sizes_, groups_, bucket_of_;
  std::vector<comm::Chunk> buckets_;
  std::vector<comm::Parts> parts_;
  size_t blocks_ = 0, whole_parameters_ = 0, element_bytes_ = 4;
};

}  // namespace remuda::train
