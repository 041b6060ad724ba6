// Pieces: bytes that lie in several places, taken from the front, one place after the other.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/parts.h"

namespace remuda::comm {

template <typename Byte>
std::span<Byte> part_of(std::span<Byte> bytes, Chunk chunk) {
  return bytes.subspan(chunk.begin, chunk.size());
}

template <typename Byte>
class Pieces {
 public:
  Pieces() = default;
  Pieces(std::span<Byte> bytes) { add(bytes); }

  void add(std::span<Byte> bytes) {
    if (bytes.empty()) return;
    places_.push_back(bytes);
    left_ += bytes.size();
  }
  /// What is next and lies in one place; empty when nothing is left.
  std::span<Byte> front() const { return left_ == 0 ? std::span<Byte>() : places_[at_].subspan(offset_); }
  /// Takes `bytes` of front().
  void take(size_t bytes) {
    left_ -= bytes;
    taken_ += bytes;
    offset_ += bytes;
    if (at_ < places_.size() && offset_ == places_[at_].size()) {
      ++at_;
      offset_ = 0;
    }
  }
  size_t left() const { return left_; }
  size_t taken() const { return taken_; }

 private:
  std::vector<std::span<Byte>> places_;
  size_t at_ = 0, offset_ = 0;  // of the first byte that is left
  size_t left_ = 0, taken_ = 0;
};

}  // namespace remuda::comm
