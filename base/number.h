// Reads whole numbers from text that contains nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace remuda {

/// All of `text` as a number: no blanks, no "+", no prefix, in range. Nothing for anything else.
template <typename T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && last == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace remuda
