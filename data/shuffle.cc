#include "data/shuffle.h"

#include "base/check.h"
#include "data/mix.h"

namespace remuda::data {

Shuffle::Shuffle(uint64_t size, uint64_t seed, uint64_t epoch) : size_(size), half_bits_(1) {
  REMUDA_CHECK(size < uint64_t{1} << 62, "two halves hold the size");
  while (uint64_t{1} << (2 * half_bits_) < size) ++half_bits_;
  uint64_t key = mix(mix(seed) ^ epoch);
  for (auto& round_key : keys_) round_key = key = mix(key);
}

uint64_t Shuffle::operator[](uint64_t position) const {
  REMUDA_CHECK(position < size_, "the position is in the order");
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t value = position;
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = left ^ (mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    value = left << half_bits_ | right;
  } while (value >= size_);
  return value;
}

}  // namespace remuda::data
