#include "base/characters.h"

#include <algorithm>

namespace remuda {
namespace {

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

}  // namespace

size_t characters(std::string_view text) { return static_cast<size_t>(std::ranges::count_if(text, starts_character)); }

std::string first_characters(std::string_view text, size_t most) {
  size_t end = 0;
  for (; end < text.size(); ++end)
    if (starts_character(text[end]) && most-- == 0) break;
  return std::string(text.substr(0, end));
}

std::string shortened(std::string_view text, size_t most) {
  constexpr std::string_view kCut = "...";
  if (characters(text) <= most) return std::string(text);
  return first_characters(text, most - std::min(most, kCut.size())) + std::string(kCut.substr(0, most));
}

}  // namespace remuda
