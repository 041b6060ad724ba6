// PoolRetry: what a keeper does while its pool cannot be read or written: it reports that, waits and tries again, so
// that a disk which is full for a while throws nobody out of the queue.
#pragma once

#include <string>

#include "pool/pool.h"
#include "run/front_link.h"

namespace remuda::run {

/// One thread; the arguments outlive it.
class PoolRetry {
 public:
  PoolRetry(pool::Pool& pool, FrontLink& link) : pool_(pool), link_(link) {}

  /// After the pool's last call failed with `error`. False where a new try cannot help. Otherwise the front gets a
  /// note, one for each cause, and true comes after a rest, longer each time, which ends early when there is news for
  /// link.
  bool rest(int64_t job, const Error& error);
  /// After a call that succeeded.
  void reset();

 private:
  pool::Pool& pool_;
  FrontLink& link_;
  int tries_ = 0;
  std::string reported_;
};

}  // namespace remuda::run
