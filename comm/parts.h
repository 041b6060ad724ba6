// Parts: how a buffer is divided among the ranks, each of which owns one contiguous part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace remuda::comm {

constexpr size_t kCacheLine = 64;

/// A range of a buffer, in elements.
struct Chunk {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const Chunk&) const = default;
};

/// Where each rank's part ends, in elements: rank r owns what lies between the end of rank r-1's part, or 0, and
/// ends[r]. A part may be empty.
class Parts {
 public:
  Parts() = default;
  /// `ends` does not decrease; its last one is the number of elements.
  explicit Parts(std::vector<size_t> ends) : ends_(std::move(ends)) {}

  Chunk of(int rank) const { return {rank == 0 ? 0 : ends_[size_t(rank) - 1], ends_[size_t(rank)]}; }
  int ranks() const { return int(ends_.size()); }
  size_t count() const { return ends_.empty() ? 0 : ends_.back(); }
  /// The same parts, counted in bytes.
  Parts in_bytes(size_t element_bytes) const;
  /// Whether all ranks' parts are of one size.
  bool are_equal() const;
  /// A number that differs, almost always, for other parts.
  uint32_t digest() const;

  bool operator==(const Parts&) const = default;

 private:
  std::vector<size_t> ends_;
};

/// `count` elements in proportion to `weights`, one per rank, none of them negative and not all 0. Parts begin at cache
/// lines, if the buffer does, so that no two ranks write to the same one; each is within a line of its proportion.
Parts parts_by(std::span<const double> weights, size_t count, size_t element_bytes);

/// As even as possible.
Parts even_parts(int ranks, size_t count, size_t element_bytes);

}  // namespace remuda::comm
