#include "top/body.h"

namespace remuda::top {

void Body::add_of(const std::string& key, const Cells& cells) {
  add(cells);
  if (key != chosen_) return;
  for (Cell& cell : lines_.back()) cell.is_chosen = true;
  const size_t line = lines_.size() - 1;
  chosen_lines_ = {chosen_lines_ ? chosen_lines_->first : line, line};
}

void Body::add_wrapped(std::string_view text, size_t indent, Tone tone) {
  for (const Cells& line : wrapped(text, width_, indent, charset_, tone)) add(line);
}

void Body::add_title(std::string_view text) {
  if (!lines_.empty()) add({});
  add(cells_of(text, charset_, Tone::quiet));
}

}  // namespace remuda::top
