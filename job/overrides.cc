#include "job/overrides.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "job/document.h"
#include "job/names.h"
#include "job/schema.h"

namespace remuda::job {
namespace {

/// A TOML string. Its escapes are those of JSON, which takes one more character as it is: delete.
std::string quoted(const std::string& text) {
  std::string escaped;
  for (const char c : to_line(Json(text))) escaped += c == '\x7f' ? std::string("\\u007f") : std::string(1, c);
  return escaped;
}

/// {"value": what `text` is as TOML}, or as a plain string when it is no TOML value.
Result<toml::table> parse_value(const std::string& text, const std::string& source) {
  if (auto table = parse_toml("value = " + text, source); table && table->size() == 1) return table;
  return parse_toml("value = " + quoted(text), source);
}

/// The table that is to hold the key, made where it is missing.
toml::table& holder_of(const std::string& key, toml::table& table) {
  const std::string parent = parent_of(key);
  if (parent.empty()) return table;
  toml::table& above = holder_of(parent, table);
  const std::string name = parent.substr(parent.rfind('.') + 1);
  if (toml::node* there = above.get(name); !there || !there->is_table()) above.insert_or_assign(name, toml::table{});
  return *above.get(name)->as_table();
}

Result<void> apply_setting(const std::string& setting, toml::table& table) {
  const size_t equals = setting.find('=');
  const std::string key = setting.substr(0, equals);
  if (equals == std::string::npos || key.empty())
    return usage_error(fmt::format("--set {}: it must be KEY=VALUE, as in train.epochs=3", setting));
  if (key == "device" || key.starts_with("device."))
    return usage_error(fmt::format("--set {}: devices are not set this way; use --devices", key));
  if (!find_key(key) && !is_table_name(key)) return usage_error(fmt::format("--set {}: {}", key, unknown_key(key)));
  if (!is_utf8(setting))
    return usage_error(
        fmt::format("--set {}: it must be UTF-8, and is {}", key, printable(setting.substr(equals + 1))));
  REMUDA_ASSIGN(toml::table parsed, parse_value(setting.substr(equals + 1), "--set " + key));
  parsed.get("value")->visit(
      [&](auto& value) { holder_of(key, table).insert_or_assign(key.substr(key.rfind('.') + 1), std::move(value)); });
  return {};
}

void erase_outputs(toml::table& table) {
  for (const Key& key : job_keys()) {
    const auto* field = std::get_if<PathField>(&key.field);
    const bool is_output = field && (field->use == PathField::Use::written || field->use == PathField::Use::filled);
    if (is_output && find_node(table, key.name)) erase_node(table, key.name);
  }
  table.erase("checkpoint");
}

Result<toml::table> device_table(const DeviceSpec& device) {
  return parse_toml(fmt::format("use = {}\nslowdown = {}\nshared = {}\nrole = {}", quoted(device.use), device.slowdown,
                                device.shared, quoted(role_word(device.role))),
                    "--devices");
}

}  // namespace

Result<void> apply_overrides(const JobOverrides& overrides, toml::table& table) {
  for (const std::string& setting : overrides.settings) REMUDA_TRY(apply_setting(setting, table));
  if (!overrides.writes_files) erase_outputs(table);
  if (overrides.devices.empty()) return {};
  toml::array devices;
  for (const DeviceSpec& device : overrides.devices) {
    REMUDA_ASSIGN(toml::table described, device_table(device));
    devices.push_back(std::move(described));
  }
  table.insert_or_assign("device", std::move(devices));
  table.erase("placement");
  return {};
}

}  // namespace remuda::job
