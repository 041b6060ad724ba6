// Version numbers: 8.0, 580.65.06.
#pragma once

#include <compare>
#include <optional>
#include <string_view>
#include <vector>

namespace remuda {

/// Numbers between dots. 8 and 8.0 are equal, 12.10 is newer than 12.9.
struct VersionNumber {
  std::vector<int> parts;  ///< without zeros at the end

  /// Nothing when it is not one to six numbers below a billion with dots between.
  static std::optional<VersionNumber> parse(std::string_view text);
  auto operator<=>(const VersionNumber&) const = default;
};

/// The numbers that a text begins with: "535.161.08" -> {535, 161, 8}, "2.5.1+cu124" -> {2, 5, 1}. Compare with the
/// operators of vector: {12} < {12, 2} < {13}.
std::vector<int> leading_numbers(std::string_view text);

}  // namespace remuda
