// Version numbers: 8.0, 580.65.06.
#pragma once

#include <compare>
#include <optional>
#include <string_view>
#include <vector>

namespace remuda::place {

/// Numbers between dots. 8 and 8.0 are equal, 12.10 is newer than 12.9.
struct VersionNumber {
  std::vector<int> parts;  ///< without zeros at the end

  /// Nothing when it is not one to six numbers below a billion with dots between.
  static std::optional<VersionNumber> parse(std::string_view text);
  auto operator<=>(const VersionNumber&) const = default;
};

}  // namespace remuda::place
