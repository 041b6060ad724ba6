#include "run/pool_retry.h"

#include <algorithm>

#include "base/clock.h"

namespace remuda::run {

double PoolRetry::pause_s(double failing_s) {
  constexpr double kShortest_s = 0.25, kLongest_s = 60, kPart = 8;
  return std::clamp(failing_s / kPart, kShortest_s, kLongest_s);
}

bool PoolRetry::rest(int64_t job, const Error& error) {
  if (!pool_.may_try_again()) return false;
  if (!fails_since_s_) fails_since_s_ = monotonic_s();
  if (error.message != reported_) link_.send(Message::Kind::note, job, error.message + "; tries again until it can");
  reported_ = error.message;
  link_.wait(pause_s(monotonic_s() - *fails_since_s_));
  return true;
}

void PoolRetry::reset() {
  fails_since_s_.reset();
  reported_.clear();
}

}  // namespace remuda::run
