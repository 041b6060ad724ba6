// Names with wildcards, as in a shell: * is any text, ? any one character. Case does not matter.
#pragma once

#include <string_view>

namespace remuda::place {

/// In time proportional to the product of the lengths, whatever the pattern.
bool glob_matches(std::string_view pattern, std::string_view text);

/// Whether `pattern` matches `model`, with the maker's word in front of it or without: "A100*" matches
/// "NVIDIA A100-SXM4-80GB" of vendor "NVIDIA".
bool model_matches(std::string_view pattern, std::string_view vendor, std::string_view model);

}  // namespace remuda::place
