// Relay: between a program that its user started and the process that does the work for it: signals go to that process,
// messages come back.
#pragma once

#include <functional>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <vector>

#include "run/message.h"

namespace remuda::run {

/// Receives the messages about a job.
using Report = std::function<void(const Message&)>;

/// A process that was forked to do the work, and the end of the channel to it; a child of this one.
struct Worker {
  pid_t pid = 0;
  Fd channel;
};
/// `work` runs in a child, with the child's end of the channel, and then the child ends. The caller has one thread and
/// no pool open.
Result<Worker> fork_worker(const std::function<void(Fd)>& work);

/// Blocks relayed_signals() for as long as this object lives, so that they can be forwarded. For a process with one
/// thread.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  ~HeldSignals();

  /// Readable once a signal is pending.
  int fd() const { return fd_.get(); }
  /// The next pending signal. Without SIGHUP where the program was started to ignore it (nohup).
  std::optional<ReceivedSignal> next();
  /// The signals that were blocked before.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
  Fd fd_;
  bool ignores_hangup_ = false;
};

/// Forwards `signals`, where given, to the worker, and continues it if it was stopped, until `take` returns true for
/// one of its messages, the last one, which is returned. Nothing when the worker is gone, or `end` is readable; -1:
/// none.
std::optional<Message> relay(const Worker& worker, HeldSignals* signals,
                             const std::function<bool(const Message&)>& take, int end = -1);

}  // namespace remuda::run
