// Signs: values as one bit each, with one scale for every kChunk of them, and what that loses, kept for the next time.
//
// The scale of a chunk is the mean of its absolute values: of all scales it loses the least (Seide et al. 2014, "1-Bit
// Stochastic Gradient Descent"; Karimireddy et al. 2019, arXiv:1901.09847). Since what is lost is added to the next
// values (error feedback), what was sent so far and what is still owed are always the sum of all values.
//
// A bit has no zero: `used` says where there is something to send. Where it is 0, the value must be 0, and stays it.
//
// All spans begin at a chunk. Pure, one thread; the same bits on every processor, which all compute as IEEE 754 says.
#pragma once

#include <cstddef>
#include <span>

namespace remuda::compress {

inline constexpr size_t kChunk = 2048;                              ///< values
inline constexpr size_t kPackedChunk = sizeof(float) + kChunk / 8;  ///< bytes: 1/31.5 of theirs

constexpr size_t chunks_of(size_t count) { return (count + kChunk - 1) / kChunk; }
constexpr size_t packed_bytes(size_t count) { return chunks_of(count) * kPackedChunk; }

/// Packs `values` into packed_bytes() of them, and leaves in them what the packed ones lack.
void pack(std::span<float> values, std::span<const float> used, std::span<std::byte> packed);
/// The packed values; and adds them to others.
void unpack(std::span<const std::byte> packed, std::span<const float> used, std::span<float> values);
void add_unpacked(std::span<const std::byte> packed, std::span<const float> used, std::span<float> values);

}  // namespace remuda::compress
