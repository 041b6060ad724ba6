// Mix: hashing of words, for what is to look random and be the same everywhere.
#pragma once

#include <cstdint>

namespace remuda::data {

/// splitmix64 (Steele, Lea, Flood 2014): a bijection of 64-bit words that mixes all bits.
constexpr uint64_t mix(uint64_t word) {
  word += 0x9E3779B97F4A7C15;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

}  // namespace remuda::data
