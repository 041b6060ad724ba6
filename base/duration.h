// Spans of time as people write and read them.
#pragma once

#include <optional>
#include <string>

namespace remuda {

/// "90", "90s", "15m", "2h", "1.5d" in seconds; nothing for anything else, and for values not above 0.
std::optional<double> parse_duration(const std::string& text);
/// 42 -> "42 s", 4000 -> "1 h 6 min", 7200 -> "2 h", 200'000 -> "2 days 7 h". The page says the same
/// (web/page/src/text.js).
std::string duration_text(double seconds);

}  // namespace remuda
