// Reads numbers from text that contains nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <type_traits>

namespace remuda {

/// All of `text` as a number: no blanks, no "+", no prefix, in range. Nothing for anything else. `base` is for whole
/// numbers.
template <typename T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  const auto read = [&](auto... how) { return std::from_chars(text.data(), text.data() + text.size(), value, how...); };
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<T>)
    result = read();
  else
    result = read(base);
  const auto [last, error] = result;
  return error == std::errc{} && last == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace remuda
