#include "base/quantity.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "base/letter_case.h"

namespace remuda {
namespace {

constexpr double kLargest = 9e18;

/// Removes a number without sign or exponent from the front of `text`.
std::optional<double> take_number(std::string_view& text) {
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text.front()))) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char letter) {
  if (text.empty() || lower(text.front()) != letter) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<double> parse_amount(std::string_view text) {
  auto value = take_number(text);
  if (!value) return std::nullopt;
  constexpr std::string_view kPrefixes = "kmgtp";
  for (size_t i = 0; i < kPrefixes.size(); ++i)
    if (take(text, kPrefixes[i])) {
      *value *= std::pow(take(text, 'i') ? 1024.0 : 1000.0, static_cast<double>(i + 1));
      break;
    }
  take(text, 'b');
  return text.empty() && *value <= kLargest ? value : std::nullopt;
}

std::optional<double> parse_part(std::string_view text) {
  auto value = take_number(text);
  if (!value) return std::nullopt;
  if (take(text, '%')) *value /= 100;
  return text.empty() && *value > 0 && *value <= 1 ? value : std::nullopt;
}

std::string amount_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  return fmt::format("{} {}", std::floor(value * 100) / 100, kUnits[unit]);
}

}  // namespace remuda
