// Cells: text as a terminal shows it, one character beside the other.
//
// What users, jobs and machines call themselves is not to be trusted: no control character becomes a cell, nor one that
// is not seen or turns the direction of writing; a wide one takes two cells, and a mark stands with the character that
// it is above. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace remuda::top {

enum class Charset {
  ascii,  ///< what is beyond it is shown as "?"
  utf8,
};

/// What a text means; which colour and weight that is, the terminal says.
enum class Tone {
  plain,
  quiet,   ///< of less importance: frames, titles, what is as it should be
  strong,  ///< what is to be read first
  work,    ///< something runs
  warn,    ///< something is for nothing
  bad,     ///< something is wrong
};

struct Cell {
  std::string text = " ";  ///< a character with its marks; empty: the right half of a wide one
  Tone tone = Tone::plain;
  bool is_chosen = false;  ///< of the row that keys act on
  bool operator==(const Cell&) const = default;
};
using Cells = std::vector<Cell>;

/// Any bytes.
Cells cells_of(std::string_view text, Charset charset, Tone tone = Tone::plain);

/// The first `width` cells, with a mark at the end where something is left out; or with blanks behind them.
Cells fitted(Cells cells, size_t width, Charset charset);
/// The same with the blanks in front.
Cells fitted_right(Cells cells, size_t width, Charset charset);

/// Lines of at most `width` cells, broken between words where that is possible; further lines are indented,
/// the first one as the text is.
std::vector<Cells> wrapped(std::string_view text, size_t width, size_t indent, Charset charset,
                           Tone tone = Tone::plain);

/// As plain text, without blanks at its end.
std::string text_of(const Cells& cells);

/// A line, built from left to right.
class Line {
 public:
  explicit Line(Charset charset) : charset_(charset) {}
  Line& add(std::string_view text, Tone tone = Tone::plain) { return add(cells_of(text, charset_, tone)); }
  Line& add(const Cells& cells);
  Line& left(std::string_view text, size_t width, Tone tone = Tone::plain);
  Line& right(std::string_view text, size_t width, Tone tone = Tone::plain);
  Line& blank(size_t count = 1) { return add(Cells(count)); }

  size_t width() const { return cells_.size(); }
  const Cells& cells() const { return cells_; }

 private:
  const Charset charset_;
  Cells cells_;
};

}  // namespace remuda::top
