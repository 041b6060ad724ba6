#include "train/flat_layout.h"

#include <algorithm>
#include <numeric>

namespace remuda::train {

FlatLayout::FlatLayout(std::span<const size_t> sizes, std::span<const size_t> groups, const Options& options)
    : sizes_(sizes.begin(), sizes.end()),
      groups_(groups.begin(), groups.end()),
      blocks_(options.blocks.size()),
      whole_parameters_(sizes.size() - std::accumulate(options.blocks.begin(), options.blocks.end(), size_t{0})),
      element_bytes_(options.element_bytes) {
  const double room = options.bucket_bytes / double(options.element_bytes);
  const size_t line = comm::kCacheLine / options.element_bytes;
  const auto padded = [line](size_t size) { return (size + line - 1) / line * line; };
  const size_t lines = options.equal_parts ? options.state_shares.size() : 1;  // of which each bucket has a multiple
  const auto end_bucket = [&] {
    if (buckets_.empty()) return;
    const size_t unit = line * lines, begin = buckets_.back().begin;
    buckets_.back().end = begin + (buckets_.back().size() + unit - 1) / unit * unit;
  };
  const auto add = [&](size_t size, bool to_new_bucket) {
    if (to_new_bucket) {
      end_bucket();
      buckets_.push_back({extent(), extent()});
    }
    const size_t begin = extent();
    buckets_.back().end = begin + padded(size);
    bucket_of_.push_back(buckets_.size() - 1);
    offsets_.push_back(begin);
  };
  for (const size_t size : sizes.first(whole_parameters_))
    add(size, buckets_.empty() || double(buckets_.back().size() + padded(size)) > room);
  size_t next = whole_parameters_;
  for (const size_t parameters : options.blocks)
    for (size_t i = 0; i < parameters; ++i) add(sizes[next++], i == 0);
  end_bucket();
  divide(options.state_shares);
}

void FlatLayout::divide(std::span<const double> state_shares) {
  parts_.clear();
  for (const comm::Chunk& bucket : buckets_)
    parts_.push_back(comm::parts_by(state_shares, bucket.size(), element_bytes_));
}

size_t FlatLayout::count() const { return std::accumulate(sizes_.begin(), sizes_.end(), size_t{0}); }

size_t FlatLayout::groups() const { return groups_.empty() ? 0 : 1 + std::ranges::max(groups_); }

std::vector<size_t> FlatLayout::offsets_in_block(size_t block) const {
  const size_t bucket = bucket_of_block(block);
  std::vector<size_t> offsets;
  for (size_t i = whole_parameters_; i < parameters(); ++i)
    if (bucket_of_[i] == bucket) offsets.push_back(offsets_[i] - buckets_[bucket].begin);
  return offsets;
}

size_t FlatLayout::parameter_at(size_t element) const {
  return size_t(std::ranges::upper_bound(offsets_, element) - offsets_.begin()) - 1;
}

size_t FlatLayout::bucket_at(size_t element) const {
  return size_t(std::ranges::upper_bound(buckets_, element, {}, &comm::Chunk::begin) - buckets_.begin()) - 1;
}

comm::Chunk FlatLayout::own(size_t bucket, int rank) const {
  const comm::Chunk part = parts_[bucket].of(rank);
  return {buckets_[bucket].begin + part.begin, buckets_[bucket].begin + part.end};
}

comm::Chunk FlatLayout::own_of(size_t parameter, int rank) const {
  const comm::Chunk mine = own(bucket_of_[parameter], rank);
  const size_t begin = std::max(mine.begin, offsets_[parameter]);
  return {begin, std::max(begin, std::min(mine.end, offsets_[parameter] + sizes_[parameter]))};
}

std::vector<Piece> FlatLayout::pieces(size_t bucket, int rank) const {
  const comm::Chunk mine = own(bucket, rank);
  std::vector<Piece> pieces;
  for (size_t i = parameter_at(mine.begin); i < parameters() && offsets_[i] < mine.end; ++i) {
    const comm::Chunk range{std::max(mine.begin, offsets_[i]), std::min(mine.end, offsets_[i] + sizes_[i])};
    if (range.begin >= range.end) continue;
    if (!pieces.empty() && pieces.back().group == groups_[i] && pieces.back().range.end == range.begin)
      pieces.back().range.end = range.end;
    else
      pieces.push_back({range, groups_[i]});
  }
  return pieces;
}

size_t FlatLayout::owned(int rank) const {
  size_t sum = 0;
  for (size_t i = 0; i < parameters(); ++i) sum += own_of(i, rank).size();
  return sum;
}

}  // namespace remuda::train
