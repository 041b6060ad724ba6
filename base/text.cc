#include "base/text.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "base/number.h"

namespace remuda {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> known) {
  size_t best = std::max<size_t>(word.size() > 2 ? 2 : 1, word.size() / 2) + 1;
  std::string found;
  for (const auto& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best) best = distance, found = candidate;
  }
  return found;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

namespace {

/// Length of the UTF-8 sequence at the front of `text` (shortest form, no surrogate); 0 when it is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80   ? 1
                        : byte(0) < 0xc2 ? 0
                        : byte(0) < 0xe0 ? 2
                        : byte(0) < 0xf0 ? 3
                        : byte(0) < 0xf5 ? 4
                                         : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (length < 3) return length;
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool beyond = (byte(0) == 0xed && byte(1) > 0x9f) || (byte(0) == 0xf4 && byte(1) > 0x8f);
  return overlong || beyond ? 0 : length;
}

bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return (first < 0x20 && first != '\t') || first == 0x7f;
  return sequence.size() == 2 && first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

/// U+061C, 200E, 200F, 202A to 202E and 2066 to 2069, which show the text behind them in another order; U+2028, 2029.
bool is_direction_or_break(std::string_view sequence) {
  if (sequence == "\u061c" || sequence == "\u200e" || sequence == "\u200f") return true;
  return (sequence >= "\u2028" && sequence <= "\u202e") || (sequence >= "\u2066" && sequence <= "\u2069");
}

}  // namespace

std::string printable(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; })) return std::string(text);  // mostly
  std::string clean;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, std::max<size_t>(length, 1));
    if (length == 0 || is_control(sequence) || is_direction_or_break(sequence))
      clean += '?';
    else
      clean += sequence;
    text.remove_prefix(sequence.size());
  }
  return clean;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::vector<std::string> made_distinct(std::vector<std::string> names) {
  const std::vector<std::string> given = names;
  for (auto name = given.begin(); name != given.end(); ++name)
    if (std::count(given.begin(), given.end(), *name) > 1)
      names[name - given.begin()] += fmt::format(" #{}", std::count(given.begin(), name + 1, *name));
  return names;
}

std::string human_bytes(double bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  constexpr double kRoundsUp = 1023.95;
  size_t unit = 0;
  while (bytes >= kRoundsUp && unit + 1 < units.size()) bytes /= 1024, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string counted(double count, std::string_view thing) {
  return fmt::format("{:.15g} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string index_ranges(std::span<const int> indices) {
  std::string text;
  for (size_t i = 0; i < indices.size();) {
    size_t last = i;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", indices[i]) : fmt::format("{}-{}", indices[i], indices[last]);
    i = last + 1;
  }
  return text;
}

std::optional<std::vector<int>> parse_index_ranges(std::string_view text) {
  constexpr int kBeyond = 65536;
  std::vector<int> indices;
  if (text.empty()) return indices;
  for (const std::string& part : split(text, ',')) {
    const size_t dash = part.find('-');
    const auto first = parse_number<int>(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_number<int>(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kBeyond) return std::nullopt;
    if (!indices.empty() && *first <= indices.back()) return std::nullopt;
    for (int index = *first; index <= *last; ++index) indices.push_back(index);
  }
  return indices;
}

}  // namespace remuda
