#include "document/toml_text.h"

#include <cmath>
#include <fmt/format.h>
#include <sstream>

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

}  // namespace

Result<toml::table> parse_toml(std::string_view text, const std::string& source) {
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
