// Watcher: takes a reading of a machine and its pool about once a second, and keeps what is to be known of the past:
// the history of devices, and the use of each lease. It reads nothing by itself, and acts on nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "monitor/history.h"
#include "monitor/metrics.h"
#include "monitor/pod_claims.h"
#include "monitor/use.h"
#include "monitor/use_store.h"

namespace remuda::monitor {

/// One thread.
class Watcher {
 public:
  /// How often what is new is written: what a killed process has taken since is lost.
  static constexpr double kWriteEvery_s = 10;

  /// In an existing folder, which one process at a time may have.
  static Result<Watcher> open(const std::string& folder);

  struct Taken {
    double now_s = 0, wall_s = 0;  ///< when: a steady time, and the same moment since 1970
    Inventory machine;
    pool::PoolState pool;                                            ///< its leases, and the jobs that hold them
    size_t waiting = 0;                                              ///< jobs in the queue
    std::vector<std::string> used_without_lease, used_by_strangers;  ///< ids of devices
    std::vector<pool::Job> gone;  ///< that have ended since the last reading, or have lost their leases
    std::optional<bool> agent_answers = std::nullopt;  ///< as in Moment: where it does not, nothing is said of the pool
    std::string agent_silence;
  };
  /// An error where something could not be written: it is tried again with a later reading, and what is in memory goes
  /// on.
  Result<void> take(Taken taken);
  /// Writes what is new. To be called at the end, too.
  Result<void> write();

  /// Of the last reading; invalid after the next one.
  Moment moment() const { return moment_of(taken_, meter_.alive()); }
  static Moment moment_of(const Taken& taken, const LeaseUses& uses) {
    Moment moment{taken.machine, taken.pool, uses, taken.waiting, taken.used_without_lease, taken.used_by_strangers};
    moment.agent_answers = taken.agent_answers;
    moment.agent_silence = taken.agent_silence;
    return moment;
  }
  History& history() { return history_; }
  UseStore& uses() { return uses_; }

 private:
  Watcher(Fd lock, History history, UseStore uses)
      : lock_(std::move(lock)), history_(std::move(history)), uses_(std::move(uses)) {}
  Result<void> resume();
  Result<void> write_uses();

  Fd lock_;
  History history_;
  UseStore uses_;
  Meter meter_;
  PodClaims pods_;
  Taken taken_;
  std::vector<LeaseUse> unwritten_;  ///< of leases that have ended
  bool is_resumed_ = false;
  double written_s_ = 0;
};

}  // namespace remuda::monitor
