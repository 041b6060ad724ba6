// The arithmetic of reductions: the same for all transports, so that they give the same bits.
#pragma once

#include <cstddef>
#include <span>

#include "comm/elements.h"

namespace remuda::comm {

/// out[k][i] = ((in[0][i] + in[1][i]) + in[2][i]) + ... for all k and all i < count. Inputs are elements of `type`,
/// which is not bytes, sums are of sum_of(type). Without inputs they are zero. An output may be one of the inputs where
/// these are the same type, but not overlap it otherwise.
void add_up(Element type, std::span<const std::byte* const> in, std::span<std::byte* const> out, size_t count);

}  // namespace remuda::comm
