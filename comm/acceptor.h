// Acceptor: lets in those who know the job's secret.
//
// Strangers (a port scanner, an HTTP client, half a message and then silence) are dropped and cost nobody else any
// time: all handshakes go on side by side, each with a deadline of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "comm/handshake.h"

namespace remuda::comm {

/// One who proved to know the secret and now waits for a verdict.
struct Visitor {
  Fd fd;
  Reception reception;
  std::string address;
  const Greeting& greeting() const { return reception.visitor(); }
};

class Acceptor {
 public:
  /// `self` outlives the acceptor and its visitors.
  Acceptor(Fd listener, const Identity& self);
  /// The next visitor; nothing when none came before the deadline.
  Result<std::optional<Visitor>> next(double deadline_s);
  /// Why the last stranger was dropped, with its address; empty when none was.
  const std::string& last_refusal() const { return last_refusal_; }

 private:
  struct Pending {
    Visitor visitor;
    Greeting::Bytes bytes{};
    size_t got = 0;
    bool challenged = false;
    double deadline_s = 0;
  };
  enum class Progress { waiting, proven, dropped };

  void welcome_waiting();
  Progress advance(Pending& pending);
  Progress hear(Pending& pending);
  Progress drop(const Pending& pending, const std::string& why);

  Fd listener_;
  const Identity* self_;
  std::vector<Pending> pending_;
  std::string last_refusal_;
};

}  // namespace remuda::comm
