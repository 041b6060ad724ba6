// The arithmetic of reductions: the same for all transports, so that they give the same bits.
#pragma once

#include <cstddef>
#include <span>

namespace remuda::comm {

/// out[k][i] = ((in[0][i] + in[1][i]) + in[2][i]) + ... for all k and all i < count. An output may be one of the
/// inputs, but not overlap it otherwise.
template <typename T>
void sum_in_rank_order(std::span<const T* const> in, std::span<T* const> out, size_t count);

extern template void sum_in_rank_order(std::span<const float* const>, std::span<float* const>, size_t);
extern template void sum_in_rank_order(std::span<const double* const>, std::span<double* const>, size_t);

}  // namespace remuda::comm
