#include "place/version_number.h"

#include "base/number.h"

namespace remuda::place {

std::optional<VersionNumber> VersionNumber::parse(std::string_view text) {
  constexpr size_t kMostParts = 6, kMostDigits = 9;
  VersionNumber version;
  for (bool more = true; more;) {
    const size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    more = dot != std::string_view::npos;
    if (more) text.remove_prefix(dot + 1);
    const auto number = parse_number<int>(part);
    if (!number || part.starts_with('-') || part.size() > kMostDigits || version.parts.size() == kMostParts)
      return std::nullopt;
    version.parts.push_back(*number);
  }
  while (!version.parts.empty() && version.parts.back() == 0) version.parts.pop_back();
  return version;
}

}  // namespace remuda::place
