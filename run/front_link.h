// FrontLink: the keeper's input: the signals that its front forwards, and those it receives itself; and its messages to
// the front.
#pragma once

#include <signal.h>
#include <vector>

#include "run/message.h"

namespace remuda::run {

/// One thread, that of the process which blocks these signals: SIGCHLD and all that ask a program to end.
class FrontLink {
 public:
  /// Blocks the signals from here on.
  static Result<FrontLink> open(Fd front);

  void send(Message::Kind kind, int64_t job, const std::string& text, int status = 0);
  /// Whether the front has read all messages so far; progress, which may be dropped, is sent only then.
  bool has_read_all() const;
  /// The signals received since the last call, each once. SIGCHLD is not among them, but it ends a wait for readable().
  std::vector<ReceivedSignal> take_signals();
  /// The front has died; known after take_signals().
  bool gone() const { return !front_; }
  /// The front has kept with what another keeper can go on with the job; known after take_signals().
  bool is_kept() const { return is_kept_; }
  /// The descriptors to wait for.
  std::vector<int> readable() const;
  /// Waits until a signal or message arrives; false when none did within `seconds`.
  bool wait(double seconds) const;

 private:
  FrontLink(Fd front, Fd signals) : front_(std::move(front)), signals_(std::move(signals)) {}
  Fd front_, signals_;
  bool is_kept_ = false;
};

/// SIGINT, SIGTERM and the other signals that ask a program to end, and SIGUSR1 and 2: those that a front forwards.
sigset_t relayed_signals();

}  // namespace remuda::run
