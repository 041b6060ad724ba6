// WatchLoop: the machine and its pool, read again and again, with what is kept of the past. `remuda watch` is this
// loop, and `remuda web` runs it beside the page.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/machine.h"
#include "monitor/alerts.h"
#include "monitor/attention.h"
#include "monitor/history.h"
#include "monitor/idle_jobs.h"
#include "monitor/metrics.h"
#include "monitor/watcher.h"
#include "run/caretaker.h"

namespace remuda::cli {

/// Where `remuda watch` of this user keeps the history of a machine, unless told otherwise: below the user's state
/// folder; for a recorded machine, in a folder of its name. An error where there is no state folder.
Result<std::string> watch_folder(const std::string& machine_file);

/// An error where this user may not see whether that file is there, or not read it.
Result<void> check_readable(const std::string& path);

/// One thread: what reads the machine ends with the thread that has opened this.
class WatchLoop {
 public:
  static constexpr double kEvery_s = 1;

  /// `must_keep`: an error where another process keeps the history in that folder; otherwise this one only reads it
  /// then, until the other one ends. On a full disk there is no history until there is room for one. An agent that does
  /// not answer is no error: pool_read() is one then.
  static Result<WatchLoop> open(const MachineFlags& flags, const std::string& folder, bool must_keep);

  /// Reads the machine and its pool, and keeps that. To be called about once a second. An error, of reading, may pass.
  /// An agent that does not answer is none: devices are read all the same.
  Result<void> step();
  /// Why the last reading could not be kept, as on a full disk. It is there all the same.
  const Result<void>& kept() const { return kept_; }
  /// Why the agent did not report the pool at the last reading, of which only the devices are known then.
  const Result<void>& pool_read() const { return pool_read_; }
  /// Whether this process keeps the history, and not another one.
  bool keeps() const { return watcher_.has_value(); }
  /// Writes what is new. To be called at the end.
  Result<void> end();

  /// Of the last step; invalid after the next one.
  monitor::Moment moment() const;
  /// With who looks after them, and which are silenced.
  std::vector<monitor::Alert> alerts() const;
  /// Null: there is none, kept() says why.
  monitor::History* history() { return watcher_ ? &watcher_->history() : others_ ? &*others_ : nullptr; }
  /// Only where pool_read() is no error.
  run::Caretaker& caretaker() { return *caretaker_; }

 private:
  /// Reads the machine: by the agent where `flags` say so, at each reading anew.
  struct Reader {
    Result<Inventory> read();

    MachineFlags flags;
    bool asked_agent = false;  ///< at the last reading
    std::unique_ptr<MachineReader> reader = nullptr;
  };

  WatchLoop(MachineFlags flags, std::string folder);
  Result<void> reach_pool();
  Result<Inventory> read_machine();
  void take_over();
  Result<void> keep_alerts();
  Result<void> look_seldom(monitor::Watcher::Taken& taken);
  Result<void> find_gone(monitor::Watcher::Taken& taken);
  Result<void> look_at_pool(monitor::Watcher::Taken& taken);

  MachineFlags flags_;
  std::string folder_;
  bool has_agent_;
  std::shared_ptr<Reader> reader_;
  std::optional<run::Caretaker> caretaker_;  ///< nothing while the agent has not answered yet
  std::optional<monitor::Watcher> watcher_;
  std::optional<monitor::History> others_;  ///< that another process keeps
  monitor::Watcher::Taken taken_;           ///< where that is so
  Result<void> kept_, pool_read_;
  monitor::Alerts alerts_;
  std::vector<monitor::Alert> active_;  ///< as they were kept last
  monitor::Attention attention_;
  double wall_s_ = 0, written_s_ = 0;
  monitor::IdleJobs idle_{monitor::kIdleFor_s};
  size_t waiting_ = 0;
  std::vector<monitor::DiskRoom> disks_;
  std::vector<std::string> strange_;                  ///< devices that processes of no job use, too
  int steps_ = 0, jobs_due_ = 0, processes_due_ = 0;  ///< steps, and at which of them those are looked at
  std::vector<pool::Lease> leases_;                   ///< of the last step
  int64_t next_job_ = 0;                              ///< then
};

}  // namespace remuda::cli
