#include "run/pool_retry.h"

#include <algorithm>
#include <cmath>

namespace remuda::run {

bool PoolRetry::rest(int64_t job, const Error& error) {
  constexpr double kFirst_s = 0.25, kLongest_s = 15;
  if (!pool_.may_try_again()) return false;
  if (error.message != reported_) link_.send(Message::Kind::note, job, error.message + "; tries again until it can");
  reported_ = error.message;
  link_.wait(std::min(kLongest_s, kFirst_s * std::exp2(std::min(tries_++, 10))));
  return true;
}

void PoolRetry::reset() {
  tries_ = 0;
  reported_.clear();
}

}  // namespace remuda::run
