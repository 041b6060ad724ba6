#include "base/json.h"

#include <fmt/format.h>

namespace remuda {
namespace {
constexpr auto kReplace = nlohmann::detail::error_handler_t::replace;
}

Result<Json> parse_json(std::string_view text, std::string_view where) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return usage_error(fmt::format("{} is not JSON: error at byte {}", where, error.byte));
  } catch (const nlohmann::json::exception&) {
    return usage_error(fmt::format("{} holds a number that is out of range", where));
  }
}

std::string to_line(const Json& json) { return json.dump(-1, ' ', false, kReplace); }
std::string to_pretty(const Json& json) { return json.dump(2, ' ', false, kReplace) + "\n"; }

}  // namespace remuda
