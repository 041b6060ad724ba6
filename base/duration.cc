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
  const auto whole = static_cast<int64_t>(std::clamp(seconds, 0.0, kMost));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min", whole / 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

}  // namespace remuda
