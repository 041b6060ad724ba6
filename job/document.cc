#include "job/document.h"

#include <sstream>

#include "job/schema.h"

namespace remuda::job {

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
