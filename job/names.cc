#include "job/names.h"

#include <fmt/format.h>
#include <set>
#include <vector>

#include "base/text.h"
#include "job/document.h"
#include "job/schema.h"

namespace remuda::job {
namespace {

constexpr size_t kMostEdits = 3;

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

/// Keys, and the tables that hold them.
std::vector<std::string> all_names() {
  std::set<std::string> names;
  for (const Key& key : job_keys())
    for (std::string name = key.name; !name.empty(); name = parent_of(name)) names.insert(name);
  return {names.begin(), names.end()};
}

/// A slip in the last word, a word put in the wrong table, or a slip anywhere: tried in this order.
std::string nearest_key(const std::string& name) {
  const std::vector<std::string> names = all_names();
  std::vector<std::string> siblings;
  for (const std::string& known : names)
    if (parent_of(known) == parent_of(name)) siblings.push_back(last_part(known));
  for (const std::string& known : names)
    if (last_part(known) == last_part(name)) return known;
  if (const std::string word = nearest(last_part(name), siblings); !word.empty())
    return parent_of(name).empty() ? word : parent_of(name) + "." + word;
  const std::string found = nearest(name, names);
  return edit_distance(name, found) <= kMostEdits ? found : "";
}

Result<void> check_below(const toml::table& table, const std::string& prefix);

Result<void> check_devices(const toml::node& node) {
  const toml::array* devices = node.as_array();
  if (!devices) return usage_error(fmt::format("{}: devices must be written as [[device]]", origin(node)));
  for (const toml::node& device : *devices) {
    if (!device.is_table())
      return usage_error(fmt::format("{}: a device must be a table, written as [[device]]", origin(device)));
    REMUDA_TRY(check_below(*device.as_table(), "device."));
  }
  return {};
}

Result<void> check_name(const std::string& name, const toml::node& node) {
  if (name == "device") return check_devices(node);
  if (is_table_name(name)) {
    if (node.is_table()) return check_below(*node.as_table(), name + ".");
    return usage_error(fmt::format("{}: {} is {}; it must be a table", origin(node), name, shown(node)));
  }
  if (!find_key(name)) return usage_error(fmt::format("{}: {}", origin(node), unknown_key(name)));
  return {};
}

Result<void> check_below(const toml::table& table, const std::string& prefix) {
  for (const auto& [key, node] : table) REMUDA_TRY(check_name(prefix + std::string(key.str()), node));
  return {};
}

}  // namespace

std::string unknown_key(const std::string& name) {
  const std::string meant = nearest_key(name);
  return meant.empty() ? fmt::format("unknown key {}", name)
                       : fmt::format("unknown key {}; did you mean {}?", name, meant);
}

Result<void> check_names(const toml::table& table) { return check_below(table, ""); }

}  // namespace remuda::job
