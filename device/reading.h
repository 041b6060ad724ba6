// Reading<T>: a value, or the reason why there is none. Never a zero for unknown.
#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <variant>

#include "device/words.h"

namespace remuda {

enum class MissingReason {
  unsupported,  ///< the device, its driver or the recording does not offer it
  denied,       ///< it is there, and this process may not read it
  lost,         ///< the device no longer answers
  stale,        ///< it was read once, too long ago to be believed
  no_driver,    ///< nothing drives the device
};

template <>
struct Words<MissingReason> {
  static constexpr std::array table{std::pair{MissingReason::unsupported, "unsupported"},
                                    std::pair{MissingReason::denied, "denied"}, std::pair{MissingReason::lost, "lost"},
                                    std::pair{MissingReason::stale, "stale"},
                                    std::pair{MissingReason::no_driver, "no_driver"}};
};

struct Missing {
  MissingReason reason = MissingReason::unsupported;
  std::string detail;  ///< one sentence

  bool operator==(const Missing&) const = default;
};

template <typename T>
class Reading {
 public:
  /// Not read: nobody asked. It is left out of JSON, where any other missing reading says why it is missing.
  Reading() : state_(Missing{MissingReason::unsupported, kNotRead}) {}
  /// `time_s`: when it was taken, in seconds since 1970; 0 = together with the inventory it stands in.
  Reading(T value, double time_s = 0) : state_(std::move(value)), time_s_(time_s) {}
  template <std::convertible_to<T> U>
  Reading(U&& value) : state_(std::in_place_type<T>, std::forward<U>(value)) {}
  Reading(Missing missing) : state_(std::move(missing)) {}

  bool has_value() const { return std::holds_alternative<T>(state_); }
  bool was_read() const { return has_value() || missing() != Missing{MissingReason::unsupported, kNotRead}; }
  const T& value() const { return std::get<T>(state_); }
  T value_or(T otherwise) const { return has_value() ? value() : std::move(otherwise); }
  const Missing& missing() const { return std::get<Missing>(state_); }
  double time_s() const { return time_s_; }

  bool operator==(const Reading&) const = default;

 private:
  static constexpr const char* kNotRead = "not read";
  std::variant<T, Missing> state_;
  double time_s_ = 0;
};

}  // namespace remuda
