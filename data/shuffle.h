// Shuffle: a random order of 0..size-1 that needs no memory and any element of which can be asked for alone.
//
// A Feistel network over the smallest even number of bits that holds `size`, walked until it lands inside (cycle
// walking): a bijection for every key. The order depends on size, seed and epoch only, never on who reads it.
#pragma once

#include <array>
#include <cstdint>

namespace remuda::data {

class Shuffle {
 public:
  Shuffle(uint64_t size, uint64_t seed, uint64_t epoch);
  uint64_t size() const { return size_; }
  /// The element at `position` < size() of the order.
  uint64_t operator[](uint64_t position) const;

 private:
  uint64_t size_;
  int half_bits_;
  std::array<uint64_t, 6> keys_;
};

}  // namespace remuda::data
