#include "top/cells.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "base/text.h"

namespace remuda::top {
namespace {

struct Codes {
  char32_t first, last;
};

/// Shown above, below or within the character before: the marks of the scripts that names are mostly written in.
constexpr std::array kMarks{Codes{0x0300, 0x036f}, Codes{0x0483, 0x0487}, Codes{0x0591, 0x05bd}, Codes{0x0610, 0x061a},
                            Codes{0x064b, 0x065f}, Codes{0x0900, 0x0902}, Codes{0x093c, 0x093c}, Codes{0x0941, 0x0948},
                            Codes{0x094d, 0x094d}, Codes{0x0e31, 0x0e31}, Codes{0x0e34, 0x0e3a}, Codes{0x0e47, 0x0e4e},
                            Codes{0x1ab0, 0x1aff}, Codes{0x1dc0, 0x1dff}, Codes{0x20d0, 0x20ff}, Codes{0xfe20, 0xfe2f}};

/// Not seen, or with an effect on what is around it: the direction of writing, forms of characters, joints.
constexpr std::array kUnseen{Codes{0x00ad, 0x00ad},  Codes{0x061c, 0x061c}, Codes{0x115f, 0x1160},
                             Codes{0x180b, 0x180f},  Codes{0x200b, 0x200f}, Codes{0x2028, 0x202e},
                             Codes{0x2060, 0x206f},  Codes{0x3164, 0x3164}, Codes{0xfe00, 0xfe0f},
                             Codes{0xfeff, 0xfeff},  Codes{0xfff0, 0xfffb}, Codes{0x1d173, 0x1d17a},
                             Codes{0xe0000, 0xe0fff}};

/// Twice as wide as others (Unicode's East_Asian_Width W and F).
constexpr std::array kWide{
    Codes{0x1100, 0x115e},   Codes{0x231a, 0x231b},   Codes{0x2329, 0x232a},   Codes{0x23e9, 0x23ec},
    Codes{0x23f0, 0x23f0},   Codes{0x23f3, 0x23f3},   Codes{0x25fd, 0x25fe},   Codes{0x2614, 0x2615},
    Codes{0x2648, 0x2653},   Codes{0x267f, 0x267f},   Codes{0x2693, 0x2693},   Codes{0x26a1, 0x26a1},
    Codes{0x26aa, 0x26ab},   Codes{0x26bd, 0x26be},   Codes{0x26c4, 0x26c5},   Codes{0x26ce, 0x26ce},
    Codes{0x26d4, 0x26d4},   Codes{0x26ea, 0x26ea},   Codes{0x26f2, 0x26f3},   Codes{0x26f5, 0x26f5},
    Codes{0x26fa, 0x26fa},   Codes{0x26fd, 0x26fd},   Codes{0x2705, 0x2705},   Codes{0x270a, 0x270b},
    Codes{0x2728, 0x2728},   Codes{0x274c, 0x274c},   Codes{0x274e, 0x274e},   Codes{0x2753, 0x2755},
    Codes{0x2757, 0x2757},   Codes{0x2795, 0x2797},   Codes{0x27b0, 0x27b0},   Codes{0x27bf, 0x27bf},
    Codes{0x2b1b, 0x2b1c},   Codes{0x2b50, 0x2b50},   Codes{0x2b55, 0x2b55},   Codes{0x2e80, 0x303e},
    Codes{0x3041, 0xa4cf},   Codes{0xa960, 0xa97f},   Codes{0xac00, 0xd7a3},   Codes{0xf900, 0xfaff},
    Codes{0xfe10, 0xfe19},   Codes{0xfe30, 0xfe6f},   Codes{0xff00, 0xff60},   Codes{0xffe0, 0xffe6},
    Codes{0x1f300, 0x1f320}, Codes{0x1f32d, 0x1f335}, Codes{0x1f337, 0x1f37c}, Codes{0x1f37e, 0x1f393},
    Codes{0x1f3a0, 0x1f3ca}, Codes{0x1f3e0, 0x1f3f0}, Codes{0x1f3f8, 0x1f43e}, Codes{0x1f440, 0x1f440},
    Codes{0x1f442, 0x1f4fc}, Codes{0x1f4ff, 0x1f53d}, Codes{0x1f550, 0x1f567}, Codes{0x1f5fb, 0x1f64f},
    Codes{0x1f680, 0x1f6c5}, Codes{0x1f90c, 0x1f9ff}, Codes{0x1fa70, 0x1faff}, Codes{0x20000, 0x3fffd}};

bool is_in(std::span<const Codes> ranges, char32_t character) {
  const auto after = std::ranges::upper_bound(ranges, character, {}, &Codes::first);
  return after != ranges.begin() && character <= std::prev(after)->last;
}

/// Takes the first character of valid UTF-8.
struct Character {
  char32_t code = 0;
  std::string_view bytes;
};
Character take(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  Character character{.code = length == 1 ? first : first & (0xffU >> (length + 1)), .bytes = text.substr(0, length)};
  for (const char byte : character.bytes.substr(1))
    character.code = character.code << 6 | (static_cast<unsigned char>(byte) & 0x3fU);
  text.remove_prefix(length);
  return character;
}

/// Two at the most are shown on a character.
void add_mark(const Character& mark, Cells& cells) {
  constexpr size_t kMostBytes = 12;
  if (cells.empty()) return;
  Cell& cell = cells.size() > 1 && cells.back().text.empty() ? cells[cells.size() - 2] : cells.back();
  if (cell.text != " " && cell.text.size() + mark.bytes.size() <= kMostBytes) cell.text += mark.bytes;
}

const char* mark_of_cut(Charset charset) { return charset == Charset::utf8 ? "…" : "~"; }

Cells cut(Cells cells, size_t width, Charset charset) {
  if (cells.size() <= width) return cells;
  const Tone tone = cells[width == 0 ? 0 : width - 1].tone;
  if (width > 0 && cells[width - 1].text.empty()) cells[width - 2].text = " ";
  cells.resize(width);
  if (width > 0) cells.back() = Cell{mark_of_cut(charset), tone, false};
  return cells;
}

}  // namespace

Cells cells_of(std::string_view text, Charset charset, Tone tone) {
  Cells cells;
  const std::string clean = printable(text);
  for (std::string_view rest = clean; !rest.empty();) {
    const Character character = take(rest);
    if (character.code == '\t') {
      cells.push_back({" ", tone});
    } else if (is_in(kMarks, character.code)) {
      if (charset == Charset::utf8) add_mark(character, cells);
    } else if (!is_in(kUnseen, character.code)) {
      const bool is_shown = charset == Charset::utf8 || character.code < 0x80;
      cells.push_back({is_shown ? std::string(character.bytes) : "?", tone});
      if (is_shown && is_in(kWide, character.code)) cells.push_back({"", tone});
    }
  }
  return cells;
}

Cells fitted(Cells cells, size_t width, Charset charset) {
  cells = cut(std::move(cells), width, charset);
  cells.resize(width);
  return cells;
}

Cells fitted_right(Cells cells, size_t width, Charset charset) {
  cells = cut(std::move(cells), width, charset);
  cells.insert(cells.begin(), width - cells.size(), Cell{});
  return cells;
}

std::vector<Cells> wrapped(std::string_view text, size_t width, size_t indent, Charset charset, Tone tone) {
  if (indent + 2 > width) indent = 0;
  const size_t before = std::min(text.find_first_not_of(' '), text.size());
  const size_t lead = before + 2 > width ? 0 : before;
  std::vector<Cells> lines(1, Cells(lead));
  const auto next = [&] { lines.emplace_back(indent); };
  for (const std::string& word : split(text.substr(before), ' ')) {
    Cells cells =
        cells_of(word, width < 2 ? Charset::ascii : charset, tone);  // no wide one where there is no room for it
    const bool is_first = lines.back().size() == (lines.size() > 1 ? indent : lead);
    if (!is_first && lines.back().size() + 1 + cells.size() > width)
      next();
    else if (!is_first)
      lines.back().push_back({" ", tone});
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool is_wide = i + 1 < cells.size() && cells[i + 1].text.empty();
      if (lines.back().size() + (is_wide ? 2 : 1) > width && !cells[i].text.empty()) next();
      lines.back().push_back(std::move(cells[i]));
    }
  }
  return lines;
}

std::string text_of(const Cells& cells) {
  std::string text;
  for (const Cell& cell : cells) text += cell.text;
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

Line& Line::add(const Cells& cells) {
  cells_.insert(cells_.end(), cells.begin(), cells.end());
  return *this;
}

Line& Line::left(std::string_view text, size_t width, Tone tone) {
  return add(fitted(cells_of(text, charset_, tone), width, charset_));
}

Line& Line::right(std::string_view text, size_t width, Tone tone) {
  return add(fitted_right(cells_of(text, charset_, tone), width, charset_));
}

}  // namespace remuda::top
