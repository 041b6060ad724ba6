#include "cli/jobs/moment.h"

#include <ctime>

#include "cli/jobs/pool_machine.h"

namespace remuda::cli {
namespace {

std::tm local_parts(double at_s) {
  const auto seconds = static_cast<std::time_t>(at_s);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return parts;
}

/// Reads all of `text`; nothing where it is no such time, or where there is no such day or hour.
std::optional<std::tm> read_as(const char* format, const std::string& text, std::tm parts) {
  parts.tm_sec = 0;
  const char* end = ::strptime(text.c_str(), format, &parts);
  if (!end || *end != '\0') return std::nullopt;
  parts.tm_isdst = -1;
  return parts;
}

std::optional<double> seconds_of(std::tm parts) {
  const std::tm asked = parts;
  const std::time_t seconds = ::mktime(&parts);
  if (seconds < 0 || parts.tm_mday != asked.tm_mday || parts.tm_mon != asked.tm_mon) return std::nullopt;
  return static_cast<double>(seconds);
}

std::optional<double> moment_of_day(const std::string& text, double now_s, Side side) {
  const auto read = read_as("%H:%M", text, local_parts(now_s));
  if (!read) return std::nullopt;
  std::tm parts = *read;
  const std::time_t today = ::mktime(&parts);
  const double seconds = static_cast<double>(today);
  const bool is_other_day = side == Side::future ? seconds < now_s : seconds > now_s;
  if (!is_other_day) return seconds;
  parts = *read;
  parts.tm_mday += side == Side::future ? 1 : -1;
  return static_cast<double>(::mktime(&parts));
}

std::optional<double> moment_of_calendar(const std::string& text) {
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"})
    if (const auto parts = read_as(format, text, {})) return seconds_of(*parts);
  return std::nullopt;
}

std::optional<double> relative_moment(const std::string& text, double now_s, Side side) {
  const bool has_now = side == Side::future && text.starts_with("now+");
  const auto span_s = parse_duration(has_now ? text.substr(4) : text);
  if (!span_s) return std::nullopt;
  return side == Side::future ? now_s + *span_s : now_s - *span_s;
}

}  // namespace

std::optional<double> parse_moment(const std::string& text, double now_s, Side side) {
  constexpr double kLatest = 253402300799;  // the year 9999
  if (text == "now") return now_s;
  auto moment = relative_moment(text, now_s, side);
  if (!moment) moment = moment_of_day(text, now_s, side);
  if (!moment) moment = moment_of_calendar(text);
  return moment && *moment > 0 && *moment <= kLatest ? moment : std::nullopt;
}

}  // namespace remuda::cli
