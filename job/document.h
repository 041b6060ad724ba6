// The TOML behind a job: values by dotted name. Internal to job.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <toml++/toml.h>

#include "base/result.h"
#include "document/toml_text.h"

namespace remuda::job {

using document::is_from_command_line;
using document::origin;
using document::parse_toml;
using document::shown;

/// The value with this dotted name, or null.
toml::node* find_node(toml::table& table, std::string_view name);
/// Removes it, and its table when that is empty then.
void erase_node(toml::table& table, const std::string& name);

/// The whole as TOML text.
std::string to_text(const toml::table& table);

/// Calls `visit` with each [[device]] table; none when there are no devices.
void for_each_device(toml::table& table, const std::function<void(toml::table&)>& visit);

}  // namespace remuda::job
