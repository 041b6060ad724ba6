// Luma: the grey of a colour, as JPEG has it.
#pragma once

#include <cstdint>

namespace remuda::data {

/// ITU-R BT.601, in integers; what Pillow's convert("L") gives, within 1.
constexpr uint8_t luma(int red, int green, int blue) {
  return uint8_t((299 * red + 587 * green + 114 * blue + 500) / 1000);
}

}  // namespace remuda::data
