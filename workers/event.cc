#include "workers/event.h"

#include <limits>

namespace remuda::workers {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const Json* field(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

ErrorKind kind_named(const std::string& name) {
  if (name == "usage") return ErrorKind::usage;
  if (name == "lost_peer") return ErrorKind::lost_peer;
  return ErrorKind::failed;
}

}  // namespace

Result<Json> parse_event(std::string_view line) {
  REMUDA_ASSIGN(Json event, parse_json(line, "an event"));
  if (text_field(event, "event").empty()) return failed("an event has no text field 'event'");
  return event;
}

std::string text_field(const Json& object, const char* key, const std::string& otherwise) {
  const Json* value = field(object, key);
  return value && value->is_string() ? value->get<std::string>() : otherwise;
}

double number_field(const Json& object, const char* key, double otherwise) {
  const Json* value = field(object, key);
  return value && value->is_number() ? value->get<double>() : otherwise;
}

std::vector<double> numbers_field(const Json& object, const char* key) {
  std::vector<double> numbers;
  const Json* list = field(object, key);
  if (!list || !list->is_array()) return numbers;
  for (const auto& element : *list) numbers.push_back(element.is_number() ? element.get<double>() : kNan);
  return numbers;
}

Error reported_error(const Json& event) {
  const double peer = number_field(event, "peer", -1);
  const bool sensible = peer >= 0 && peer < 1e6;
  return {kind_named(text_field(event, "kind")), text_field(event, "message", "failed without saying why"),
          sensible ? static_cast<int>(peer) : -1};
}

}  // namespace remuda::workers
