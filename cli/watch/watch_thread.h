// WatchThread: a WatchLoop on a thread of its own, for a program that also does something else.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/watch/alert_reports.h"
#include "cli/watch/watch_loop.h"

namespace remuda::cli {

/// Safe from any thread.
class WatchThread {
 public:
  /// Opens the loop, again and again where that fails, and reads the machine once a second.
  /// `reports`: how people are told of alerts, if this process keeps the history: else the one that does tells them.
  /// `after_each`: called after each reading, before anybody looks at it.
  WatchThread(MachineFlags flags, std::string folder, ReportFlags reports = {},
              std::function<void(const WatchLoop&)> after_each = nullptr);
  /// What is new is written.
  ~WatchThread();
  WatchThread(const WatchThread&) = delete;

  /// Calls `use` between two readings, so it should be quick. An error where there is no reading, with its cause, also
  /// where one takes too long.
  Result<void> look(const std::function<Result<void>(WatchLoop&)>& use);

 private:
  void work();
  Result<void> step();

  const MachineFlags flags_;
  const std::string folder_;
  const ReportFlags reports_;
  const std::function<void(const WatchLoop&)> after_each_;
  std::timed_mutex mutex_;  ///< held while the machine is read
  std::condition_variable_any changed_;
  std::optional<WatchLoop> loop_;
  std::optional<Result<void>> outcome_;  ///< of the last step; empty: there was none
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace remuda::cli
