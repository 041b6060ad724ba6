// Characters of UTF-8 text, as a terminal shows them one beside the other; wide ones count as one.
#pragma once

#include <string>
#include <string_view>

namespace remuda {

size_t characters(std::string_view text);

/// The first `most` characters.
std::string first_characters(std::string_view text, size_t most);

/// The text itself where it has no more than `most` characters, otherwise as many with "..." as the last three.
std::string shortened(std::string_view text, size_t most);

}  // namespace remuda
