// PoolRetry: what a keeper does while its pool cannot be read or written: it reports that, waits and tries again, so
// that a disk that is full for a while does not remove a job from the queue.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "pool/access.h"
#include "run/front_link.h"

namespace remuda::run {

/// One thread; the arguments outlive it.
class PoolRetry {
 public:
  PoolRetry(pool::Access& pool, FrontLink& link) : pool_(pool), link_(link) {}

  /// After the pool's last call failed with `error`. Returns false where a new try cannot help. Otherwise the front
  /// gets a note, one for each cause, and true is returned after pause_s(), or once `link` receives something.
  bool rest(int64_t job, const Error& error);
  /// After a call that succeeded.
  void reset();
  /// Where nothing has succeeded for so long: an eighth of that, and a minute at most. So it is known soon after it was
  /// down for a moment, and those of an agent that never comes back cost nothing.
  static double pause_s(double failing_s);

 private:
  pool::Access& pool_;
  FrontLink& link_;
  std::optional<double> fails_since_s_;  ///< on the steady clock
  std::string reported_;
};

/// Calls `record`, which tells the pool how a job has ended, until it succeeds, as other jobs may wait for it: for a
/// day. Told to stop, as at a shutdown of the machine, it leaves that to the agent, where there is one, which sees that
/// this process is gone. Returns the last error.
Result<void> record_for_a_day(const std::function<Result<void>()>& record, int64_t job, pool::Access& pool,
                              FrontLink& link);

}  // namespace remuda::run
