// FrontLink: the keeper's ears: what its front tells it, and the signals it gets itself.
#pragma once

#include <signal.h>
#include <vector>

#include "run/message.h"

namespace remuda::run {

/// One thread, that of the process which holds these signals back: SIGCHLD and all that ask a program to end.
class FrontLink {
 public:
  /// Holds the signals back from here on.
  static Result<FrontLink> open(Fd front);

  void tell(Message::Kind kind, int64_t job, const std::string& text, int status = 0);
  /// The front has read all that it was told: it can hear of what is not worth keeping.
  bool is_heard() const;
  /// What came since, each once. SIGCHLD is not news, but its coming ends a wait for readable().
  std::vector<SignalNews> news();
  /// The front has died; known after news().
  bool gone() const { return !front_; }
  /// To wait for.
  std::vector<int> readable() const;
  /// Waits until something came; false when nothing did for so long.
  bool rest(double seconds) const;

 private:
  FrontLink(Fd front, Fd signals) : front_(std::move(front)), signals_(std::move(signals)) {}
  Fd front_, signals_;
};

/// SIGINT, SIGTERM and their like, and SIGUSR1 and 2: what a front hands on.
sigset_t relayed_signals();

}  // namespace remuda::run
