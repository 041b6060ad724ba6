#include "recorded/text.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/number.h"
#include "base/text.h"

namespace remuda::recorded {
namespace {

constexpr size_t kLargestText = 4 << 20;
constexpr size_t kLongestComment = 300;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kHardBlank = "\xc2\xa0";
constexpr char kEscape = '\x1b';

/// The end of the escape sequence that starts at `at`: ESC [ parameters letter, ESC ] text BEL, or ESC and one letter.
size_t after_escape(std::string_view text, size_t at) {
  const char kind = at + 1 < text.size() ? text[at + 1] : '\0';
  const char* last = kind == '[' ? "@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\n" : "\a\n";
  if (kind != '[' && kind != ']') return std::min(at + (kind == '\n' ? 1 : 2), text.size());
  const size_t end = text.find_first_of(last, at + 2);
  if (end == std::string_view::npos) return text.size();
  return text[end] == '\n' ? end : end + 1;
}

std::string without_escapes(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] == kEscape) {
      i = after_escape(text, i);
    } else if (text.substr(i).starts_with(kHardBlank)) {
      clean += ' ';
      i += kHardBlank.size();
    } else {
      const auto byte = static_cast<unsigned char>(text[i++]);
      const bool kept = byte >= 0x20 ? byte != 0x7f : byte == '\t' || byte == '\n' || byte == '\r';
      clean += kept ? static_cast<char>(byte) : ' ';
    }
  }
  return clean;
}

/// "# nvidia-smi topo -p2p rw" is a command typed by root, or noted: it says what follows.
bool is_comment(std::string_view line) {
  return line[0] == '#' && !trim(line.substr(1)).starts_with("nvidia-smi topo");
}

}  // namespace

Result<Text> read_lines(std::string_view raw, std::string_view where) {
  if (raw.size() > kLargestText)
    return usage_error(fmt::format("{} is text of {}; what prints a machine's links prints at most {}", where,
                                   human_bytes(static_cast<double>(raw.size())), human_bytes(kLargestText)));
  if (raw.starts_with(kByteOrderMark)) raw.remove_prefix(kByteOrderMark.size());
  const std::string clean = without_escapes(raw);
  Text text{.where = std::string(where), .lines = {}, .comment = {}, .cut = false};
  for (size_t at = 0; at < clean.size();) {
    const size_t end = std::min(clean.find_first_of("\n\r", at), clean.size());
    const std::string_view line = std::string_view(clean).substr(at, end - at);
    at = end + 1;
    if (trim(line).empty()) continue;
    if (!is_comment(line)) {
      text.lines.emplace_back(line);
      text.cut = end == clean.size();
    } else if (text.comment.empty()) {
      text.comment = comment_text(line);
    }
  }
  return text;
}

std::vector<Word> words(std::string_view line) {
  std::vector<Word> found;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    found.push_back({line.substr(at, end - at), at});
    at = end;
  }
  return found;
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::optional<int> whole_number(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : parse_number<int>(text);
}

std::string comment_text(std::string_view line) {
  line = trim(line.substr(1));
  if (line.starts_with("source:")) line = trim(line.substr(7));
  return brief(line, kLongestComment);
}

std::string brief(std::string_view text, size_t limit) {
  std::string clean = printable(text.substr(0, limit));
  return clean.size() <= limit ? clean : clean.substr(0, limit);
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kSome = 4;
  const size_t shown = names.size() > kSome + 1 ? kSome : names.size();
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const char* separator = i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += separator + names[i];
  }
  return shown == names.size() ? text : text + fmt::format(" and {} more", names.size() - shown);
}

}  // namespace remuda::recorded
