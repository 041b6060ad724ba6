// Amounts as people write them: 24GiB, 40Gi, 1.5TB, 30%.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace remuda {

/// "24GiB", "24Gi", "24g", "1073741824" -> bytes; nothing when it is not an amount. K, M, G, T and P are powers of
/// 1000, with an i of 1024; a B may follow; case does not matter.
std::optional<double> parse_amount(std::string_view text);

/// "30%", "0.3", "1" -> a part of one, above 0 and at most 1; nothing otherwise.
std::optional<double> parse_part(std::string_view text);

/// 42949672960 -> "40 GiB", 25757220864 -> "23.98 GiB": two decimals at most, and never rounded up to more than there
/// is.
std::string amount_text(int64_t bytes);

}  // namespace remuda
