// Events: what has happened to devices and runs, for the marks on the lanes: alerts that began, device errors,
// checkpoints, runs that began again, and changes of how a run splits its work. They are seen where what a snapshot
// says has changed since it was looked at before: what came and went in between, nobody knows. Pure.
//
//   EventLog log;
//   log.take({.alerts = snapshot["alerts"], .runs = snapshot["runs"], .time_s = now_s});  // again and again
//   snapshot["events"] = log.until(now_s);
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "device/inventory.h"

namespace remuda::snapshot {

struct Event {
  double time_s = 0;                 ///< seconds since 1970
  std::string kind;                  ///< alert, error, throttled, checkpoint, restart, rebalance
  std::vector<std::string> devices;  ///< ids; none where that is not told: then the job says
  int64_t job = 0;                   ///< 0: of none
  std::string text;                  ///< for people
};

/// One thread.
class EventLog {
 public:
  /// All of them are in each snapshot. Of more, the oldest of a job is forgotten, as its user may tell what he likes;
  /// and the oldest at all where none is of a job.
  static constexpr size_t kMost = 200;

  struct Seen {
    const Json &alerts, &runs;  ///< as in a snapshot
    double time_s = 0;
  };
  void take(const Seen& seen);
  /// What a recording tells itself, in the form of until().
  void take_told(const Json& events);
  /// Errors that drivers have reported, as samples have them: those that were not there before.
  void take_errors(const Inventory& inventory);
  /// Jobs that were queued again, and lost their devices then.
  void take_restart(int64_t job, double time_s, std::vector<std::string> devices);

  /// Those up to that time, oldest first: [{"time_s", "kind", "devices", "job", "text"}].
  Json until(double time_s) const;

 private:
  struct Run {
    int64_t step = 0, checkpoint_step = 0;
    std::map<std::string, double> shares;
  };
  void take_alert(const Json& alert, const std::set<std::pair<std::string, double>>& before);
  void take_run(const Json& entry, double time_s);
  void add(Event event);

  std::deque<Event> events_;                         ///< by time
  std::set<std::pair<std::string, double>> alerts_;  ///< of the last look, with when each began
  std::set<std::pair<double, int64_t>> restarts_;    ///< the newest that were noted, with their jobs
  std::map<int64_t, Run> runs_;
};

}  // namespace remuda::snapshot
