#include "policy/hours.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"

namespace remuda::policy {
namespace {

constexpr std::array<std::string_view, 7> kDays{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr double kDay_s = 86400;

std::optional<size_t> day_of(std::string_view text) {
  const auto found = std::ranges::find(kDays, text);
  return found == kDays.end() ? std::nullopt : std::optional<size_t>(found - kDays.begin());
}

/// 1970 began on a Thursday.
size_t weekday_of(int64_t day) { return static_cast<size_t>(((day + 3) % 7 + 7) % 7); }

double length_of(const Hours& hours) {
  const int minutes = hours.to_min - hours.from_min;
  return (minutes > 0 ? minutes : minutes + Hours::kMinutesOfDay) * 60.0;
}

}  // namespace

bool Hours::meet(double from_s, double to_s, double utc_offset_s) const {
  const double from = from_s + utc_offset_s, to = to_s + utc_offset_s, length_s = length_of(*this);
  const int64_t first = static_cast<int64_t>(std::floor(from / kDay_s)) - 1;
  for (int64_t day = first; day <= first + 8; ++day) {
    const double begins = static_cast<double>(day) * kDay_s + from_min * 60.0;
    if (days.at(weekday_of(day)) && (begins < to || begins == from) && begins + length_s > from) return true;
  }
  return false;
}

double Hours::next_end_s(double after_s, double utc_offset_s) const {
  const double after = after_s + utc_offset_s;
  const int64_t first = static_cast<int64_t>(std::floor(after / kDay_s)) - 1;
  for (int64_t day = first; day <= first + 9; ++day) {
    const double ends = static_cast<double>(day) * kDay_s + from_min * 60.0 + length_of(*this);
    if (days.at(weekday_of(day)) && ends > after) return ends - utc_offset_s;
  }
  return kNever_s;
}

std::optional<std::array<bool, 7>> parse_days(std::string_view text) {
  std::array<bool, 7> days{};
  for (const std::string& part : split(text, ',')) {
    const size_t dash = part.find('-');
    const auto first = day_of(std::string_view(part).substr(0, dash));
    const auto last = dash == std::string::npos ? first : day_of(std::string_view(part).substr(dash + 1));
    if (!first || !last) return std::nullopt;
    for (size_t day = *first;; day = (day + 1) % 7) {
      days.at(day) = true;
      if (day == *last) break;
    }
  }
  return days;
}

std::optional<int> parse_minute(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto hour = parse_number<int>(text.substr(0, 2)), minute = parse_number<int>(text.substr(3));
  if (!hour || !minute || *hour < 0 || *minute < 0 || *minute > 59) return std::nullopt;
  const int of_day = *hour * 60 + *minute;
  return of_day <= Hours::kMinutesOfDay ? std::optional(of_day) : std::nullopt;
}

std::string hours_text(const Hours& hours) {
  std::string days;
  for (size_t day = 0; day < kDays.size(); ++day) {
    if (!hours.days.at(day)) continue;
    size_t last = day;
    while (last + 1 < kDays.size() && hours.days.at(last + 1)) ++last;
    days += fmt::format("{}{}{}", days.empty() ? "" : ",", kDays.at(day),
                        last > day ? fmt::format("-{}", kDays.at(last)) : "");
    day = last;
  }
  if (days == "Mon-Sun") days = "every day";
  if (hours.from_min == 0 && hours.to_min == Hours::kMinutesOfDay) return days == "every day" ? "always" : days;
  return fmt::format("{} {:02}:{:02}-{:02}:{:02}", days, hours.from_min / 60, hours.from_min % 60, hours.to_min / 60,
                     hours.to_min % 60);
}

}  // namespace remuda::policy
