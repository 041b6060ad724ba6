#include "job/document.h"

#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <sstream>

#include "base/json.h"
#include "job/schema.h"

namespace remuda::job {
namespace {

constexpr size_t kShownBytes = 60;

bool is_flag(const std::string& source) { return source.starts_with("--"); }

std::string place(const std::string& source, uint32_t line) {
  return is_flag(source) ? source : fmt::format("{}:{}", source, line);
}

/// What the parser says, as the second half of a sentence.
std::string reason_of(const toml::parse_error& error) {
  std::string reason(error.description());
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  if (reason.ends_with("could not determine value type")) reason += "; text stands in quotes";
  return reason;
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

toml::node* find_node(toml::table& table, std::string_view name) {
  const size_t dot = name.find('.');
  toml::node* node = table.get(name.substr(0, dot));
  if (dot == std::string_view::npos || !node) return node;
  return node->is_table() ? find_node(*node->as_table(), name.substr(dot + 1)) : nullptr;
}

void erase_node(toml::table& table, const std::string& name) {
  const std::string parent = parent_of(name);
  toml::table& holder = parent.empty() ? table : *find_node(table, parent)->as_table();
  holder.erase(name.substr(parent.empty() ? 0 : parent.size() + 1));
  if (!parent.empty() && holder.empty()) erase_node(table, parent);
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

std::string to_text(const toml::table& table) {
  std::ostringstream stream;
  stream << toml::toml_formatter{table} << "\n";
  return stream.str();
}

void for_each_device(toml::table& table, const std::function<void(toml::table&)>& visit) {
  toml::node* devices = table.get("device");
  if (!devices || !devices->is_array()) return;
  for (toml::node& device : *devices->as_array())
    if (device.is_table()) visit(*device.as_table());
}

}  // namespace remuda::job
