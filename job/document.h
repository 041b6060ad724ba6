// The TOML behind a job: where a value came from, and values by dotted name. Internal to job.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <toml++/toml.h>

#include "base/result.h"

namespace remuda::job {

/// Parses a file, or a value of the command line; then `source` is the flag, as in "--set train.epochs".
Result<toml::table> parse_toml(std::string_view text, const std::string& source);

/// "job.toml:3", or "--set train.epochs" for what came from the command line.
std::string origin(const toml::node& node);
bool is_from_command_line(const toml::node& node);

/// The value with this dotted name, or null.
toml::node* find_node(toml::table& table, std::string_view name);
/// Removes it, and its table when that is empty then.
void erase_node(toml::table& table, const std::string& name);

/// The value as the user wrote it, cut when it is long.
std::string shown(const toml::node& node);

/// The whole as TOML text.
std::string to_text(const toml::table& table);

/// Calls `visit` with each [[device]] table; none when there are no devices.
void for_each_device(toml::table& table, const std::function<void(toml::table&)>& visit);

}  // namespace remuda::job
