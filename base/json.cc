#include "base/json.h"

#include <algorithm>
#include <fmt/format.h>

namespace remuda {
namespace {
constexpr auto kReplace = nlohmann::detail::error_handler_t::replace;

bool is_plain(const Json& json) { return !json.is_structured() || json.empty(); }

/// Entries between brackets: on one line when all are scalars of a list, else one to a line.
void write_pretty(const Json& json, size_t indent, std::string& out) {
  if (is_plain(json)) {
    out += to_line(json);
    return;
  }
  const bool one_line = json.is_array() && std::ranges::all_of(json, is_plain);
  const std::string line = "\n" + std::string(indent, ' ');
  const char* separator = "";
  out += json.is_array() ? '[' : '{';
  for (const auto& [key, value] : json.items()) {
    out += separator;
    if (!one_line) out += line + "  ";
    if (json.is_object()) out += to_line(key) + ": ";
    write_pretty(value, indent + 2, out);
    separator = one_line ? ", " : ",";
  }
  if (!one_line) out += line;
  out += json.is_array() ? ']' : '}';
}

/// Copying and writing go one call deeper with each level, and a hostile file could exhaust the stack.
bool is_nested_too_deep(std::string_view text) {
  constexpr int kDeepest = 200;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else
        in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    if ((c == '[' || c == '{') && ++depth > kDeepest) return true;
    depth -= c == ']' || c == '}' ? 1 : 0;
  }
  return false;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view where) {
  if (is_nested_too_deep(text)) return usage_error(fmt::format("{} is nested too deep", where));
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return usage_error(fmt::format("{} is not JSON: error at byte {}", where, error.byte));
  } catch (const nlohmann::json::exception&) {
    return usage_error(fmt::format("{} holds a number that is out of range", where));
  }
}

bool parse_json(std::string_view text, JsonEvents& events) {
  return Json::sax_parse(text.begin(), text.end(), &events);
}

std::string to_line(const Json& json) { return json.dump(-1, ' ', false, kReplace); }

std::string to_pretty(const Json& json) {
  std::string text;
  write_pretty(json, 0, text);
  return text + "\n";
}

}  // namespace remuda
