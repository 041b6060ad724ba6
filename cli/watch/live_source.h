// LiveSource: this machine and its pool as the page shows them (snapshot/source.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/machine.h"
#include "cli/watch/watch_thread.h"
#include "device/inventory.h"
#include "monitor/use.h"
#include "place/held.h"
#include "pool/latest_outlooks.h"
#include "pool/state.h"
#include "snapshot/events.h"
#include "snapshot/source.h"

namespace remuda::cli {

class LiveSource : public snapshot::Source {
 public:
  /// `user`: who looks. Other users' command lines are left out. `folder`: of the history, which is kept from here on
  /// unless another process keeps it; where this one does, `reports` says how people are told of alerts.
  LiveSource(MachineFlags flags, std::string folder, std::string user, ReportFlags reports = {});

  /// The pool at a moment, and what else scheduling it takes.
  struct Pool {
    pool::PoolState state;
    Inventory inventory;
    std::vector<place::Held> held;
    pool::Policy policy;
    double now_s = 0;
  };

  Result<Json> snapshot() override;
  Result<snapshot::History> history(const snapshot::HistoryQuery& query) override;
  Result<Json> set_score(const snapshot::SetQuery& query) override;
  Result<std::string> metrics(snapshot::Metrics format) override;

 private:
  const monitor::LeaseUses& uses_beside(WatchLoop& loop);
  Result<Pool> read_pool(WatchLoop& loop, double now_s);
  Result<Json> seen_through(WatchLoop& loop, std::optional<Pool>& pool);
  void note_events(const WatchLoop& loop);

  const std::string user_, folder_;
  monitor::LeaseUses others_uses_;  ///< what the process counts that keeps the history, where that is another one
  double others_read_s_ = -kNever_s;
  Json known_ = Json::object();    ///< what the pool said last; empty: nothing yet
  double known_s_ = 0;             ///< when, in seconds since 1970
  pool::LatestOutlooks outlooks_;  ///< used by snapshot() alone, which is called from one thread
  snapshot::EventLog events_;      ///< of the time since `events_since_s_`; used between readings alone
  const double events_since_s_;
  WatchThread watch_;
};

}  // namespace remuda::cli
