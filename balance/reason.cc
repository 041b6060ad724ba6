#include "balance/reason.h"

#include <cmath>
#include <fmt/format.h>

namespace remuda::balance {
namespace {

std::string samples(int count) { return fmt::format("{} sample{}", count, count == 1 ? "" : "s"); }

std::string moved(const ShareMove& move) {
  if (move.from == move.to) return "its share stays at " + samples(move.to);
  return fmt::format("its share goes from {} to {}", move.from, samples(move.to));
}

}  // namespace

std::string gain_text(double gain) {
  return fmt::format("the step is predicted {:.0f} % {}", std::abs(gain) * 100, gain < 0 ? "longer" : "shorter");
}

std::string speed_reason(const ShareMove& move, double factor, double gain) {
  return fmt::format("{} became {:.1f}x {}: {}; {}", move.device, factor > 1 ? factor : 1 / factor,
                     factor > 1 ? "slower" : "faster", moved(move), gain_text(gain));
}

std::string slowest_reason(const ShareMove& move, double gain) {
  return fmt::format("{} is the slowest: {}; {}", move.device, moved(move), gain_text(gain));
}

std::string hindsight_reason(const ShareMove& move, int steps, double gain) {
  return fmt::format(
      "the last {} steps would have been {:.0f} % shorter with other shares: that of {} goes from {} to {}", steps,
      gain * 100, move.device, move.from, samples(move.to));
}

std::string retry_reason(const ShareMove& move, int idle_steps) {
  return fmt::format("{} had no samples for {} steps: {} to measure it again", move.device, idle_steps, moved(move));
}

std::string limit_reason(const ShareMove& move, int most) {
  return fmt::format("{} takes at most {}: {}", move.device, samples(most), moved(move));
}

}  // namespace remuda::balance
