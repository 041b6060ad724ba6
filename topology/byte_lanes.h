// ByteLanes: sixteen bytes that are worked on at once. Internal to topology.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace remuda::topology {

/// Plain data. The compiler turns each operation into one or two instructions of the processor's vector unit; where
/// there is none, into a loop.
struct ByteLanes {
  static constexpr size_t kCount = 16;
  using Bytes [[gnu::vector_size(kCount)]] = uint8_t;

  Bytes bytes;

  static ByteLanes all(uint8_t value) { return {Bytes{} + value}; }
  uint8_t operator[](size_t lane) const { return bytes[lane]; }
  void set(size_t lane, uint8_t value) { bytes[lane] = value; }
};

inline ByteLanes min(ByteLanes a, ByteLanes b) { return {a.bytes < b.bytes ? a.bytes : b.bytes}; }
inline ByteLanes max(ByteLanes a, ByteLanes b) { return {a.bytes > b.bytes ? a.bytes : b.bytes}; }
inline ByteLanes operator&(ByteLanes a, ByteLanes b) { return {a.bytes & b.bytes}; }

/// Where lanes are numbered by sets of four elements: what stood at each set without element `Bit` then stands at that
/// set with it; 0 at the sets without.
template <size_t Bit>
ByteLanes moved_to_sets_with(ByteLanes lanes) {
  static_assert(Bit < 4, "sixteen lanes are the sets of four elements");
  static_assert(std::endian::native == std::endian::little, "a shift of words to the left moves bytes to later lanes");
  using Words [[gnu::vector_size(ByteLanes::kCount)]] = uint64_t;
  const auto words = std::bit_cast<Words>(lanes.bytes);
  if constexpr (Bit == 3) return {std::bit_cast<ByteLanes::Bytes>(Words{0, words[0]})};
  constexpr std::array<uint64_t, 3> kWith{0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000, 0xFFFFFFFF00000000};
  return {std::bit_cast<ByteLanes::Bytes>((words << (8U << Bit)) & kWith[Bit % 3])};
}

}  // namespace remuda::topology
