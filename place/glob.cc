#include "place/glob.h"

#include <algorithm>

#include "base/letter_case.h"

namespace remuda::place {

bool glob_matches(std::string_view pattern, std::string_view text) {
  constexpr size_t kNone = std::string_view::npos;
  size_t at = 0, star = kNone, resume = 0;  // the position of the last *, and the end of the text that it matches
  for (size_t i = 0; i < text.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || lower(pattern[at]) == lower(text[i]))) {
      ++at, ++i;
    } else if (star != kNone) {
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  return std::ranges::all_of(pattern.substr(at), [](char c) { return c == '*'; });
}

bool model_matches(std::string_view pattern, std::string_view vendor, std::string_view model) {
  if (glob_matches(pattern, model)) return true;
  const bool has_maker = !vendor.empty() && model.size() > vendor.size() && model[vendor.size()] == ' ' &&
                         equals_without_case(vendor, model.substr(0, vendor.size()));
  return has_maker && glob_matches(pattern, model.substr(vendor.size() + 1));
}

}  // namespace remuda::place
