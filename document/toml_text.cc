#include "document/toml_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <sstream>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/letter_case.h"
#include "base/text.h"

namespace remuda::document {
namespace {

constexpr size_t kShownBytes = 60;

bool is_flag(const std::string& source) { return source.starts_with("--"); }

std::string place(const std::string& source, uint32_t line) {
  return is_flag(source) ? source : fmt::format("{}:{}", source, line);
}

/// What the parser says, as the second half of a sentence.
std::string reason_of(const toml::parse_error& error) {
  std::string reason(error.description());
  if (!reason.empty()) reason[0] = lower(reason[0]);
  for (const auto& [theirs, ours] : {std::pair<std::string_view, std::string_view>{"error while parsing ", "in the "},
                                     {", saw '\\n'", ", and the line ends"},
                                     {", saw '\\r'", ", and the line ends"},
                                     {"encountered end-of-file", "the file ends within it"}})
    if (const size_t at = reason.find(theirs); at != std::string::npos) reason.replace(at, theirs.size(), ours);
  if (reason.ends_with("could not determine value type")) reason += "; text stands in quotes";
  return printable(reason);
}

/// The first line where values are nested deeper than `most`, by brackets and by dots of keys; 0: there is none. The
/// parser, and whatever frees what it has made, calls itself for each level.
class Depth {
 public:
  explicit Depth(std::string_view text) : text_(text) {}

  uint32_t first_line_beyond(size_t most) {
    for (; at_ < text_.size(); ++at_) {
      take(text_[at_]);
      if (levels_ > most) return line_;
    }
    return 0;
  }

 private:
  void take(char c) {
    if (c == '\n') {
      ++line_;
      if (open_.empty()) leave_key();
    } else if (c == '"' || c == '\'') {
      skip_text(c);
    } else if (c == '#') {
      while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
    } else if (c == '.') {
      ++dots_, ++levels_;
    } else if (c == ',') {
      leave_key();
    } else if (c == '[' || c == '{') {
      open_.push_back(dots_);
      dots_ = 0;
      ++levels_;
    } else if ((c == ']' || c == '}') && !open_.empty()) {
      leave_key();
      dots_ = open_.back();
      open_.pop_back();
      --levels_;
    }
  }
  void leave_key() { levels_ -= std::exchange(dots_, 0); }

  /// To the end of a text in quotes, of one line or of several.
  void skip_text(char quote) {
    const std::string three(3, quote);
    const bool is_long = text_.substr(at_).starts_with(three);
    const std::string_view end = is_long ? std::string_view(three) : std::string_view(three).substr(0, 1);
    for (at_ += end.size(); at_ < text_.size() && !text_.substr(at_).starts_with(end); ++at_) {
      if (text_[at_] == '\\' && quote == '"') ++at_;
      if (at_ < text_.size() && text_[at_] == '\n' && !is_long) break;  // the parser says that it has no end
      if (at_ < text_.size() && text_[at_] == '\n') ++line_;
    }
    at_ = std::min(text_.size(), at_ + end.size());
    for (int more = 0; is_long && more < 2 && at_ < text_.size() && text_[at_] == quote; ++more) ++at_;  // its own
    --at_;
  }

  std::string_view text_;
  size_t at_ = 0, dots_ = 0, levels_ = 0;
  std::vector<size_t> open_;  ///< the dots before each bracket that is open
  uint32_t line_ = 1;
};

}  // namespace

Result<toml::table> parse_toml(std::string_view text, const std::string& source) {
  constexpr size_t kDeepest = 64;
  if (const uint32_t line = Depth(text).first_line_beyond(kDeepest); line > 0)
    return usage_error(fmt::format("{}: values are nested more than {} deep", place(source, line), kDeepest));
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    return usage_error(fmt::format("{}: {}", place(source, error.source().begin.line), reason_of(error)));
  }
}

bool is_from_command_line(const toml::node& node) { return node.source().path && is_flag(*node.source().path); }

std::string origin(const toml::node& node) {
  return node.source().path ? place(*node.source().path, node.source().begin.line) : "job";
}

std::string shown(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (const auto* number = node.as_floating_point(); number && std::isfinite(number->get()))
    return to_line(Json(number->get()));
  std::ostringstream stream;
  node.visit([&](const auto& value) { stream << value; });
  std::string text = stream.str();
  if (text.size() <= kShownBytes && text.find('\n') == std::string::npos) return text;
  return node.is_array() ? "a long list" : "a long text";
}

}  // namespace remuda::document
