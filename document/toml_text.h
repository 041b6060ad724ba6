// TOML as people write it: parsed with errors that name the line, and values with the place they came from.
#pragma once

#include <string>
#include <string_view>
#include <toml++/toml.h>

#include "base/result.h"

namespace remuda::document {

/// Parses a file, or a value of the command line; then `source` is the flag, as in "--set train.epochs".
Result<toml::table> parse_toml(std::string_view text, const std::string& source);

/// "job.toml:3", or "--set train.epochs" for what came from the command line.
std::string origin(const toml::node& node);
bool is_from_command_line(const toml::node& node);

/// The value as the user wrote it, cut when it is long.
std::string shown(const toml::node& node);

}  // namespace remuda::document
