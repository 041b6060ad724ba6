// Relay: between a program that its user started and the process that does the work for it: signals there, messages
// back.
#pragma once

#include <functional>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <vector>

#include "run/message.h"

namespace remuda::run {

/// Takes what is reported of a job.
using Report = std::function<void(const Message&)>;

/// A process that was forked to do the work, and the end of the channel to it; a child of this one.
struct Worker {
  pid_t pid = 0;
  Fd channel;
};
/// `work` runs in a child, with the other end, and then the child ends. The caller has one thread and no pool open.
Result<Worker> fork_worker(const std::function<void(Fd)>& work);

/// What asks a program to end, held back for as long as this lives, so that it can be handed on. Belongs to a process
/// of one thread.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  ~HeldSignals();

  /// Readable once a signal came.
  int fd() const { return fd_.get(); }
  /// Without SIGHUP where the program was started to ignore it (nohup).
  std::optional<SignalNews> next();
  /// The signals that were held back before.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
  Fd fd_;
  bool ignores_hangup_ = false;
};

/// Hands `signals`, where there are any, on to the worker, which goes on if it was stopped, until `take` says of one of
/// its messages that it is the last, which is returned. Nothing when the worker is gone, or `end` is readable.
std::optional<Message> relay(const Worker& worker, HeldSignals* signals,
                             const std::function<bool(const Message&)>& take, int end = -1);

}  // namespace remuda::run
