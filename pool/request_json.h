// A request as JSON: how a pool keeps it, and how `remuda ps --json` shows it.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "place/request.h"

namespace remuda::pool {

/// The request's fields, as people write them; without those that are not set.
Json to_json(const place::Request& request);
/// At least the bytes of that.
size_t size_of(const place::Request& request);
/// Whether to_json() may write a field of that name.
bool is_request_field(const std::string& name);
/// Reads what to_json() wrote, or a usage error that starts with `where`.
Result<place::Request> parse_request(const Json& json, const std::string& where);

}  // namespace remuda::pool
