#include "train/flat_layout.h"

#include <algorithm>
#include <numeric>

namespace remuda::train {

FlatLayout::FlatLayout(std::span<const size_t> sizes, std::span<const size_t> groups, const Options& options)
    : groups_(groups.begin(), groups.end()),
      blocks_(options.blocks.size()),
      whole_parameters_(sizes.size() - std::accumulate(options.blocks.begin(), options.blocks.end(), size_t{0})),
      element_bytes_(options.element_bytes) {
  const double room = options.bucket_bytes / double(options.element_bytes);
  const auto add = [&](size_t size, bool to_new_bucket) {
    const size_t begin = offsets_.back(), end = begin + size;
    if (to_new_bucket) buckets_.push_back({begin, end});
    buckets_.back().end = end;
    bucket_of_.push_back(buckets_.size() - 1);
    offsets_.push_back(end);
  };
  for (const size_t size : sizes.first(whole_parameters_))
    add(size, buckets_.empty() || double(buckets_.back().size() + size) > room);
  size_t next = whole_parameters_;
  for (const size_t parameters : options.blocks)
    for (size_t i = 0; i < parameters; ++i) add(sizes[next++], i == 0);
  divide(options.state_shares);
}

void FlatLayout::divide(std::span<const double> state_shares) {
  parts_.clear();
  for (const comm::Chunk& bucket : buckets_)
    parts_.push_back(comm::parts_by(state_shares, bucket.size(), element_bytes_));
}

size_t FlatLayout::groups() const { return groups_.empty() ? 0 : 1 + std::ranges::max(groups_); }

size_t FlatLayout::bucket_at(size_t element) const {
  return size_t(std::ranges::upper_bound(buckets_, element, {}, &comm::Chunk::begin) - buckets_.begin()) - 1;
}

comm::Chunk FlatLayout::own(size_t bucket, int rank) const {
  const comm::Chunk part = parts_[bucket].of(rank);
  return {buckets_[bucket].begin + part.begin, buckets_[bucket].begin + part.end};
}

std::vector<Piece> FlatLayout::pieces(size_t bucket, int rank) const {
  const comm::Chunk mine = own(bucket, rank);
  std::vector<Piece> pieces;
  const auto first = std::ranges::upper_bound(offsets_, mine.begin) - offsets_.begin() - 1;
  for (auto i = size_t(first); i < groups_.size() && offsets_[i] < mine.end; ++i) {
    const comm::Chunk range{std::max(mine.begin, offsets_[i]), std::min(mine.end, offsets_[i + 1])};
    if (range.size() == 0) continue;
    if (!pieces.empty() && pieces.back().group == groups_[i])
      pieces.back().range.end = range.end;
    else
      pieces.push_back({range, groups_[i]});
  }
  return pieces;
}

size_t FlatLayout::owned(int rank) const {
  size_t sum = 0;
  for (size_t bucket = 0; bucket < buckets(); ++bucket) sum += own(bucket, rank).size();
  return sum;
}

}  // namespace remuda::train
