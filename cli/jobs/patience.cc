#include "cli/jobs/patience.h"

#include <algorithm>

#include "base/clock.h"

namespace remuda::cli {

Patience::Patience() : seen_s_(monotonic_s()) {}

Result<void> Patience::after(const Result<void>& look, const pool::Access& pool, double most_s) {
  constexpr double kPatience_s = 30, kPause_s = 0.1;
  if (look) {
    seen_s_ = monotonic_s();
    return {};
  }
  if (!pool.may_try_again() || monotonic_s() >= seen_s_ + kPatience_s) return look;
  steady_clock().sleep_s(std::min(kPause_s, most_s));
  return {};
}

}  // namespace remuda::cli
