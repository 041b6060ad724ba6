// Letter case, of the letters of ASCII alone and in every locale: for names of models, files and protocols.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace remuda {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// "GeForce" -> "geforce"
inline std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low) c = lower(c);
  return low;
}

/// Whether two texts are one, whatever the case of their letters.
constexpr bool equals_without_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace remuda
