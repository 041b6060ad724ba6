// The arithmetic of all_reduce: the same for all transports, so that they give the same bits.
#pragma once

#include <cstddef>
#include <span>

namespace remuda::comm {

constexpr size_t kCacheLine = 64;

struct Chunk {
  size_t begin = 0;  ///< in elements
  size_t end = 0;
  size_t size() const { return end - begin; }
};

/// The part of `count` elements that rank `owner` of `ranks` adds up: whole cache lines, as even as possible.
inline Chunk chunk_of(size_t count, size_t element_bytes, int owner, int ranks) {
  const size_t per_line = kCacheLine / element_bytes;
  const size_t lines = (count + per_line - 1) / per_line;
  const auto edge = [&](size_t rank) {
    const size_t at = lines * rank / ranks * per_line;
    return at < count ? at : count;
  };
  return {edge(owner), edge(owner + 1)};
}

/// out[k][i] = ((in[0][i] + in[1][i]) + in[2][i]) + ... for all k and all i < count. An output may be one of the
/// inputs, but not overlap it otherwise.
template <typename T>
void sum_in_rank_order(std::span<const T* const> in, std::span<T* const> out, size_t count);

extern template void sum_in_rank_order(std::span<const float* const>, std::span<float* const>, size_t);
extern template void sum_in_rank_order(std::span<const double* const>, std::span<double* const>, size_t);

}  // namespace remuda::comm
