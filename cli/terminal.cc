#include "cli/terminal.h"

#include <algorithm>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/characters.h"
#include "base/table.h"

namespace remuda::cli {
namespace {

/// The number of visible characters: without escape sequences for colours.
size_t seen(std::string_view text) {
  size_t hidden = 0;
  for (size_t at = text.find('\x1b'); at != std::string_view::npos; at = text.find('\x1b', at + 1))
    hidden += std::min(text.find('m', at), text.size() - 1) - at + 1;
  return characters(text) - hidden;
}

/// Where the text of a line begins: after the last gap in its first half, else after its indentation.
size_t text_begin(std::string_view line, size_t width) {
  const size_t hidden = characters(line) - seen(line), half = width / 2 + hidden;
  const size_t gap = line.substr(0, half).rfind("  ");
  if (gap != std::string_view::npos) return gap + 2;
  return std::min(line.find_first_not_of(' '), half);
}

/// "  remuda place -n 2      the best two": where what stands after the gap begins, if it is past the line's first
/// half.
size_t late_text(std::string_view line, size_t width) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size()), gap = line.find("  ", begin);
  if (begin == 0 || gap == std::string_view::npos || seen(line.substr(0, gap)) > width) return std::string_view::npos;
  const size_t text = line.find_first_not_of(' ', gap);
  return text != std::string_view::npos && seen(line.substr(0, text)) > width / 2 ? text : std::string_view::npos;
}

std::string fitted_line(std::string_view line, size_t width) {
  constexpr size_t kFurther = 4;
  if (const size_t late = late_text(line, width); late != std::string_view::npos) {
    const std::string_view head = line.substr(0, line.find_last_not_of(' ', late - 1) + 1);
    const std::string below = std::string(line.find_first_not_of(' ') + kFurther, ' ') + std::string(line.substr(late));
    return std::string(head) + "\n" + (seen(below) > width ? fitted_line(below, width) : below);
  }
  const size_t first = text_begin(line, width);
  std::string text, row(line.substr(0, first));
  const std::string indent(seen(row), ' ');
  bool has_word = false;
  for (std::string_view rest = line.substr(first); !rest.empty();) {
    const size_t begin = rest.find_first_not_of(' '), end = rest.find(' ', begin);
    if (begin == std::string_view::npos) break;
    const std::string_view word = rest.substr(0, end);  // with the blanks before it
    if (has_word && seen(row) + seen(word) > width) {
      text += row + "\n";
      row = indent;
      row += rest.substr(begin, end == std::string_view::npos ? end : end - begin);
    } else {
      row += word;
    }
    has_word = true;
    rest = end == std::string_view::npos ? "" : rest.substr(end);
  }
  return text + row;
}

}  // namespace

std::optional<size_t> terminal_width(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

size_t table_width() { return terminal_width(STDOUT_FILENO).value_or(Table::kAnyWidth); }

std::string fitted(std::string_view text, size_t width) {
  std::string all;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    all += seen(line) > width ? fitted_line(line, width) : std::string(line);
    if (end == std::string_view::npos) break;
    all += '\n';
    text.remove_prefix(end + 1);
  }
  return all;
}

std::string unbroken(std::string_view text) {
  constexpr size_t kFull = 60;  // a shorter line ends where it does for a reason
  const auto begins_with_text = [](std::string_view line) {
    return !line.empty() && line.front() != ' ' && line.front() != '\n';
  };
  std::string all;
  size_t length = 0;
  bool is_text = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (is_text && length >= kFull && begins_with_text(line)) all.back() = ' ';
    length = characters(line);
    is_text = begins_with_text(line);
    all += line;
    if (line.size() == text.size()) break;
    all += '\n';
    text.remove_prefix(line.size() + 1);
  }
  return all;
}

void print_fitted(std::string_view text) { fmt::print("{}", fitted(text, table_width())); }

}  // namespace remuda::cli
