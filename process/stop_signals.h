// StopSignals: SIGINT and SIGTERM as something to wait for, in place of sudden death.
#pragma once

#include <optional>
#include <signal.h>

#include "base/file.h"
#include "base/result.h"

namespace remuda::process {

/// While it lives, both signals are held back from the calling thread and can be read here. Afterwards they act as
/// before. Programs with more threads make it before they start them.
class StopSignals {
 public:
  static Result<StopSignals> hold();
  StopSignals(StopSignals&& other) noexcept = default;
  StopSignals& operator=(StopSignals&&) = delete;
  ~StopSignals();

  /// Readable, in the sense of poll, once a signal has come.
  int fd() const { return fd_.get(); }
  /// The next signal that has come; nothing if none has.
  std::optional<int> next();

 private:
  StopSignals(Fd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}
  Fd fd_;
  sigset_t before_;
};

}  // namespace remuda::process
