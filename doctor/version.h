// Versions: dotted numbers that can be compared.
#pragma once

#include <string_view>
#include <vector>

namespace remuda::doctor {

/// "535.161.08" -> {535, 161, 8}; stops at the first thing that is no number: "2.5.1+cu124" -> {2, 5, 1}. Compare with
/// the operators of vector: {12} < {12, 2} < {13}.
std::vector<int> version_numbers(std::string_view text);

}  // namespace remuda::doctor
