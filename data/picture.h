// Picture: pixels in memory.
#pragma once

#include <cstdint>
#include <vector>

namespace remuda::data {

struct PictureSize {
  int height = 0;
  int width = 0;
  bool operator==(const PictureSize&) const = default;
};

/// Pixels row by row, the channels of a pixel side by side.
struct Picture {
  int channels = 0;
  PictureSize size;
  std::vector<uint8_t> values;  ///< keeps its memory from one picture to the next
};

}  // namespace remuda::data
