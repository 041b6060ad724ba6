#include "run/pool_retry.h"

#include <algorithm>
#include <csignal>

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

Result<void> record_for_a_day(const std::function<Result<void>()>& record, int64_t job, pool::Access& pool,
                              FrontLink& link) {
  constexpr double kPatience_s = 24 * 3600;
  PoolRetry retry(pool, link);
  for (const double end_s = monotonic_s() + kPatience_s;;) {
    auto recorded = record();
    if (recorded) return recorded;
    const auto signals = link.take_signals();
    const bool is_told_to_stop = std::ranges::find(signals, SIGTERM, &ReceivedSignal::number) != signals.end();
    if (is_told_to_stop && pool.is_served()) return recorded;
    if (!retry.rest(job, recorded.error()) || monotonic_s() >= end_s) return recorded;
  }
}

}  // namespace remuda::run
