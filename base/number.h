// Numbers in text that must hold nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace remuda {

/// The whole of `text` as a number: no blanks, no "+", no prefix, in range. Nothing for anything else. `base`: of whole
/// numbers.
template <typename T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc{} && last == end ? std::optional(value) : std::nullopt;
}

}  // namespace remuda
