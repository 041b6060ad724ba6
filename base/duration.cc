#include "base/duration.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>

namespace remuda {

std::optional<double> parse_duration(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value <= 0) return std::nullopt;
  const std::string_view unit(end, text.data() + text.size());
  double unit_s = 0;
  if (unit.empty() || unit == "s") unit_s = 1;
  if (unit == "m" || unit == "min") unit_s = 60;
  if (unit == "h") unit_s = 3600;
  if (unit == "d") unit_s = 86400;
  const double seconds = value * unit_s;
  return seconds > 0 && std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
}

std::string duration_text(double seconds) {
  constexpr double kMost = 1e15;
  const int64_t whole = std::llround(std::clamp(seconds, 0.0, kMost)), minutes = whole / 60, hours = minutes / 60;
  if (whole < 60) return fmt::format("{} s", whole);
  if (hours < 1) return fmt::format("{} min", minutes);
  const auto with = [](std::string text, int64_t rest, const char* unit) {
    return rest == 0 ? text : fmt::format("{} {} {}", text, rest, unit);
  };
  if (hours < 48) return with(fmt::format("{} h", hours), minutes % 60, "min");
  return with(fmt::format("{} days", hours / 24), hours % 24, "h");
}

}  // namespace remuda
