// Words: the one spelling of each enum value, in JSON, in tables and on the command line.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace remuda {

/// Specialised beside each enum: `static constexpr std::array table{std::pair{Kind::cpu, "cpu"}, ...}`.
template <typename Enum>
struct Words;

template <typename Enum>
concept Worded = requires { Words<Enum>::table; };

template <Worded Enum>
constexpr const char* to_string(Enum value) {
  for (const auto& [known, word] : Words<Enum>::table)
    if (known == value) return word;
  return "";
}

template <Worded Enum>
constexpr std::optional<Enum> from_word(std::string_view text) {
  for (const auto& [known, word] : Words<Enum>::table)
    if (text == word) return known;
  return std::nullopt;
}

}  // namespace remuda
