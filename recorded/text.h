// Text that other programs printed, as lines and words, made harmless. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace remuda::recorded {

struct Text {
  std::string where;               ///< names the source in errors
  std::vector<std::string> lines;  ///< neither blank lines nor comments; no escapes, no control characters but tabs
  std::string comment;             ///< the first line that begins with '#', without "# source: "
  bool cut = false;                ///< nothing ends the last line: it may be the half of one
};

/// Lines may end in LF, CR or both. "# nvidia-smi topo ..." is a command, no comment. A usage error for more than
/// 4 MiB.
Result<Text> read_lines(std::string_view text, std::string_view where);

struct Word {
  std::string_view text;
  size_t at = 0;  ///< its offset in the line
};
/// What blanks and tabs separate.
std::vector<Word> words(std::string_view line);
std::string_view trim(std::string_view text);

/// Decimal digits and nothing else; nothing when they do not fit.
std::optional<int> whole_number(std::string_view text);

/// A line that begins with '#', without "# " and "source: ".
std::string comment_text(std::string_view line);
/// Foreign text for a terminal: printable, at most `limit` bytes.
std::string brief(std::string_view text, size_t limit);
/// "a", "a and b", "a, b, c, d and 12 more".
std::string some_of(const std::vector<std::string>& names);

}  // namespace remuda::recorded
