#include "base/version_number.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace remuda {

std::vector<int> leading_numbers(std::string_view text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || number < 0) break;
    numbers.push_back(number);
    if (next == end || *next != '.') break;
    at = next + 1;
  }
  return numbers;
}

std::optional<VersionNumber> VersionNumber::parse(std::string_view text) {
  constexpr std::ptrdiff_t kMostParts = 6;
  constexpr size_t kMostDigits = 9;
  size_t digits = 0;
  for (const char c : text) {
    if (c != '.' && (c < '0' || c > '9')) return std::nullopt;
    digits = c == '.' ? 0 : digits + 1;
    if (digits > kMostDigits) return std::nullopt;
  }
  VersionNumber version{leading_numbers(text)};
  const std::ptrdiff_t parts = std::ranges::count(text, '.') + 1;
  if (std::ssize(version.parts) != parts || parts > kMostParts) return std::nullopt;  // a part is empty, or too many
  while (!version.parts.empty() && version.parts.back() == 0) version.parts.pop_back();
  return version;
}

}  // namespace remuda
