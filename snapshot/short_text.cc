#include "snapshot/short_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "base/letter_case.h"
#include "base/text.h"

namespace remuda::snapshot {
namespace {

/// Words that all models of a vendor share.
constexpr std::array<std::string_view, 7> kLines{"GeForce", "Instinct", "Tesla",      "Quadro",
                                                 "Radeon",  "Graphics", "Corporation"};

/// Whether "PCIE-40GB", "SXM4-40GB" or "80GB HBM3" begins here.
bool states_memory(std::string_view text) {
  for (const std::string_view socket : {"PCIE", "PCI", "SXM"}) {
    if (!equals_without_case(text.substr(0, socket.size()), socket)) continue;
    text.remove_prefix(socket.size());
    if (!text.empty() && text[0] >= '0' && text[0] <= '9') text.remove_prefix(1);
    if (text.empty() || (text[0] != '-' && text[0] != ' ')) return false;
    text.remove_prefix(1);
    break;
  }
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  if (text.starts_with(' ')) text.remove_prefix(1);
  return digits > 0 && equals_without_case(text.substr(0, 2), "GB") &&
         (text.size() == 2 || text[2] == ' ' || text[2] == '-');
}

}  // namespace

std::string brief_time(double seconds) {
  std::string brief;
  const std::vector<std::string> words = split(duration_text(seconds), ' ');
  for (size_t i = 0; i + 1 < words.size(); i += 2) brief += (i > 0 ? " " : "") + words[i] + words[i + 1][0];
  return brief;
}

std::string short_model(const std::string& model, const std::string& vendor) {
  std::string text;
  for (const std::string& word : split(model, ' ')) {
    const bool is_known = equals_without_case(word, vendor) ||
                          std::ranges::any_of(kLines, [&](auto line) { return equals_without_case(word, line); });
    if (!word.empty() && !is_known) text += (text.empty() ? "" : " ") + word;
  }
  for (size_t at = text.find_first_of("- "); at != std::string::npos; at = text.find_first_of("- ", at + 1))
    if (at > 0 && states_memory(std::string_view(text).substr(at + 1))) return text.substr(0, at);
  return text.empty() ? "model unknown" : text;
}

}  // namespace remuda::snapshot
