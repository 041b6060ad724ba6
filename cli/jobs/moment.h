// Moments as people write them: relative to now, or by this machine's calendar and clock.
#pragma once

#include <optional>
#include <string>

namespace remuda::cli {

/// On which side of now a moment without a date is.
enum class Side { past, future };

/// Seconds since 1970 of "2h" (from now, or before now), "now", "14:30" (the next, or the last), "2026-11-24" and
/// "2026-11-24 14:30" (or with T between them). "now+2h", as Slurm has it, is "2h" on the side of the future. Nothing
/// for anything else, days that no month has included.
std::optional<double> parse_moment(const std::string& text, double now_s, Side side);

}  // namespace remuda::cli
