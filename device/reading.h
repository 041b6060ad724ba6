// Reading<T>: a value, or the reason why there is none. Never a zero for unknown.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/json.h"

namespace remuda {

enum class MissingReason { unsupported, denied, lost, stale, no_driver };

/// "unsupported", "denied", ...: the words of the JSON format.
const char* to_string(MissingReason reason);

struct Missing {
  MissingReason reason = MissingReason::unsupported;
  std::string detail;  ///< one sentence
};

template <typename T>
class Reading {
 public:
  Reading() : state_(Missing{MissingReason::unsupported, "not read"}) {}
  Reading(T value) : state_(std::move(value)) {}
  Reading(Missing missing) : state_(std::move(missing)) {}

  bool has_value() const { return std::holds_alternative<T>(state_); }
  const T& value() const { return std::get<T>(state_); }
  const Missing& missing() const { return std::get<Missing>(state_); }

 private:
  std::variant<T, Missing> state_;
};

/// The value itself, or {"missing": reason, "detail": sentence}.
template <typename T>
Json to_json(const Reading<T>& reading) {
  if (reading.has_value()) return reading.value();
  return {{"missing", to_string(reading.missing().reason)}, {"detail", reading.missing().detail}};
}

}  // namespace remuda
