// Body: the lines of the screen between its head and its foot, some of them of an item that can be chosen. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "top/cells.h"

namespace remuda::top {

class Body {
 public:
  /// `chosen`: the key of the item whose lines are marked.
  Body(size_t width, Charset charset, std::string chosen)
      : width_(width), charset_(charset), chosen_(std::move(chosen)) {}

  size_t width() const { return width_; }
  Charset charset() const { return charset_; }

  void add(const Cells& cells) { lines_.push_back(fitted(cells, width_, charset_)); }
  /// A line of an item.
  void add_of(const std::string& key, const Cells& cells);
  /// A text that may be long.
  void add_wrapped(std::string_view text, size_t indent, Tone tone);
  /// A blank line, unless it would be the first, and a title.
  void add_title(std::string_view text);

  const std::vector<Cells>& lines() const { return lines_; }
  /// First and last line of the chosen item.
  std::optional<std::pair<size_t, size_t>> chosen() const { return chosen_lines_; }

 private:
  const size_t width_;
  const Charset charset_;
  const std::string chosen_;
  std::vector<Cells> lines_;
  std::optional<std::pair<size_t, size_t>> chosen_lines_;
};

}  // namespace remuda::top
