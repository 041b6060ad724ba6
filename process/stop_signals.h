// StopSignals: makes SIGINT, SIGTERM and, where wanted, SIGHUP events to wait for, in place of the default action.
#pragma once

#include <optional>
#include <signal.h>

#include "base/file.h"
#include "base/result.h"

namespace remuda::process {

/// While it lives, these signals are blocked in the calling thread and can be read here. Afterwards they act as before.
/// Programs with more threads make it before they start them.
class StopSignals {
 public:
  /// SIGINT and SIGTERM.
  static Result<StopSignals> hold();
  /// SIGHUP too, which comes when the terminal is closed; not where the process was started to ignore it (nohup).
  static Result<StopSignals> hold_with_hang_up();
  StopSignals(StopSignals&& other) noexcept = default;
  StopSignals& operator=(StopSignals&&) = delete;
  ~StopSignals();

  /// Readable, in the sense of poll, once a signal is pending.
  int fd() const { return fd_.get(); }
  /// The next pending signal; nothing if there is none.
  std::optional<int> next();

 private:
  static Result<StopSignals> hold(const sigset_t& stop);
  StopSignals(Fd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}
  Fd fd_;
  sigset_t before_;
};

}  // namespace remuda::process
