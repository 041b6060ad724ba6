// Reads and writes JSON. Only this header names the library behind it.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace remuda {

/// Keeps the order in which keys were written, so that output reads as documented.
using Json = nlohmann::ordered_json;

/// Parses one JSON text. `where` names its source in the error. Never throws.
Result<Json> parse_json(std::string_view text, std::string_view where);

/// What a text holds, one call for each piece as it is read (nlohmann/json_sax.hpp): for texts that are too large, or
/// not trusted enough, to be built as a whole. Each call says whether to go on.
using JsonEvents = nlohmann::json_sax<Json>;

/// Passes a text to `events`. False when it is no JSON, which parse_error() was told, or when a call has said so. Never
/// throws, unless a call does.
bool parse_json(std::string_view text, JsonEvents& events);

/// One line, no spaces; text that is not UTF-8 is replaced, never thrown on.
std::string to_line(const Json& json);
/// Indented by two spaces, lists of plain values on one line, with a final newline.
std::string to_pretty(const Json& json);

}  // namespace remuda
