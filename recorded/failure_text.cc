#include "recorded/failure_text.h"

#include <algorithm>
#include <array>

#include "base/letter_case.h"

namespace remuda::recorded {
namespace {

constexpr size_t kMostFailureLines = 12;  // a program that fails is brief; other text is no failure
constexpr size_t kLongest = 400;

}  // namespace

bool is_complaint(std::string_view line) {
  constexpr std::array<std::string_view, 15> kWords{"warning",    "error",     "fail",         "unable",
                                                    "couldn't",   "could not", "cannot",       "no devices were found",
                                                    "not found",  "is lost",   "mismatch",     "not loaded",
                                                    "permission", "corrupted", "not installed"};
  const std::string words = lower(line);
  return std::ranges::any_of(kWords, [&](std::string_view word) { return words.find(word) != std::string::npos; });
}

std::optional<std::string> failure_in(const Text& text) {
  if (text.lines.size() > kMostFailureLines || std::ranges::none_of(text.lines, is_complaint)) return std::nullopt;
  std::string said;
  for (const std::string& line : text.lines) {
    if (!said.empty()) said += "; ";
    said += trim(line);
  }
  return brief(said, kLongest);
}

}  // namespace remuda::recorded
