// ReplaySource: recorded machines as a source. Each is an inventory (`remuda record`) or anything `remuda import`
// understands. An inventory with samples is played; beside it, the same JSON object may hold what a pool said of it:
//
//   "jobs": {"leases": [...], "waiting": [...]}   as `remuda ps --json` prints them, over all of the time: a lease with
//                                                 "ended_s" is over from then on
//   "drains", "runs", "alerts": [...]             each shown from its "since_s" on
//   "events": [...]                               beside those that follow from these (snapshot/events.h)
//
// What becomes of those that wait, and who has used how much, is worked out as in a pool that is there
// (pool/outlook.h), without a policy, unless the recording says so itself.
//
// The recordings end together. What is played is the time from `first_s` to their end, `speed` times as fast as the
// clock; then it stays there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "pool/latest_outlooks.h"
#include "snapshot/events.h"
#include "snapshot/source.h"

namespace remuda::snapshot {

struct Recording {
  Inventory inventory;
  Json jobs, drains, runs, alerts, events;  ///< null where the recording has none
};

/// Any text; an error starts with `where`.
Result<Recording> parse_recording(std::string_view text, std::string_view where);
Result<Recording> read_recording(const std::string& path);

struct Playback {
  double speed = 1;
  double part_before = 0.75;  ///< of the time recorded, that has passed when it begins
};

class ReplaySource : public Source {
 public:
  /// At least one recording; the first is the host of the page. `clock` outlives it, and is used from several threads.
  ReplaySource(std::vector<Recording> recordings, Clock& clock, Playback playback = {});

  Result<Json> snapshot() override;
  Result<History> history(const HistoryQuery& query) override;
  Result<Json> set_score(const SetQuery& query) override;

 private:
  double position_s() const;
  Json host_at(size_t place, double time_s);

  const std::vector<Recording> recordings_;
  std::vector<pool::LatestOutlooks> outlooks_;  ///< of each; used by snapshot() alone
  std::vector<EventLog> events_;                ///< of each: of all of its time
  Clock& clock_;
  const Playback playback_;
  const double began_s_;
  double first_s_ = 0, last_s_ = 0;  ///< of what was recorded
};

}  // namespace remuda::snapshot
