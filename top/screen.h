// Screen: one frame of the terminal, made of what is seen and what was chosen. Pure.
#pragma once

#include <string>
#include <vector>

#include "top/cells.h"
#include "top/choice.h"
#include "top/picture.h"

namespace remuda::top {

struct Size {
  size_t rows = 24, columns = 80;
  bool operator==(const Size&) const = default;
};

struct Frame {
  std::vector<Cells> rows;  ///< as many as the size says, each as wide
  size_t first_line = 0;    ///< of the list, for the next frame's Choice
};

/// A frame for a terminal of that size, with the head on top and what keys do below. Any size.
Frame frame_of(const Picture& picture, const Choice& choice, Size size, Charset charset);

/// All of it as plain text, for pipes: without what keys do.
std::string whole_text(const Picture& picture, const Choice& choice, size_t columns, Charset charset);

}  // namespace remuda::top
