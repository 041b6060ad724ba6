// Hours: times of the week, as a reservation has them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace remuda::policy {

/// The same hours of some days of the week. Pure: the time zone is an offset that comes from outside.
struct Hours {
  static constexpr int kMinutesOfDay = 24 * 60;

  std::array<bool, 7> days{true, true, true, true, true, true, true};  ///< from Monday
  int from_min = 0, to_min = kMinutesOfDay;  ///< of the day; where `to` is not above `from`, it is on the next day

  /// Whether `from_s`, or any time from it to before `to_s`, is one of these, in seconds since 1970. `to_s` may be
  /// infinite.
  bool meet(double from_s, double to_s, double utc_offset_s) const;
  /// When the first of these that end after `after_s` do; for ever (base/clock.h) where they are of no day.
  double next_end_s(double after_s, double utc_offset_s) const;
  bool operator==(const Hours&) const = default;
};

/// "Mon-Fri", "Sat,Sun", "Fri-Mon"; nothing for anything else.
std::optional<std::array<bool, 7>> parse_days(std::string_view text);
/// "08:00" as minutes of the day, to "24:00"; nothing for anything else.
std::optional<int> parse_minute(std::string_view text);

/// "Mon-Fri 08:00-18:00", "every day 22:00-06:00", "always".
std::string hours_text(const Hours& hours);

}  // namespace remuda::policy
