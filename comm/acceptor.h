// Acceptor: accepts only connections whose other end knows the job's secret.
//
// All handshakes run concurrently, each with a deadline of its own. A connection that is not a rank's (a port scanner,
// an HTTP client, half a message and then silence) is dropped at its first wrong byte, at its deadline, or when its
// place is needed: idle connections do not delay the ranks, however many there are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "comm/handshake.h"

namespace remuda::comm {

/// A connection whose other end has proved to know the secret and waits for a verdict.
struct Candidate {
  Fd fd;
  AcceptorHandshake handshake;
  std::string address;
  const Greeting& greeting() const { return handshake.connector(); }
};

struct AcceptorLimits {
  double handshake_s = 3;  ///< a rank needs milliseconds
  size_t pending = 1024;   ///< handshakes at a time; fewer where the system grants fewer descriptors
  double silence_s = 0.2;  ///< when all places are taken: how long a connection without a hello keeps its place
};

class Acceptor {
 public:
  /// `self` outlives the acceptor and its candidates.
  Acceptor(Fd listener, const Identity& self, AcceptorLimits limits = {});
  /// The next candidate; nothing when none came before the deadline.
  Result<std::optional<Candidate>> next(double deadline_s);
  /// Why a connection was dropped, with its address: the last one that sent a hello, or else the last; empty when none
  /// was.
  const std::string& last_refusal() const { return last_refusal_; }

 private:
  struct Pending {
    Candidate candidate;
    double since_s = 0;
    Greeting::Bytes bytes{};
    size_t got = 0;
    bool challenged = false;  // sent a hello and was answered
    bool readable = false;    // there is something to read
  };
  enum class Progress { waiting, proven, dropped };

  Result<void> accept_all();
  bool is_full() const { return pending_.size() >= limits_.pending; }
  std::vector<Pending>::iterator longest_silent();
  double room_s();
  bool make_room();
  Progress advance(Pending& pending);
  Progress read(Pending& pending);
  Progress answer(Pending& pending);
  Progress drop(const Pending& pending, const std::string& why);
  std::optional<Candidate> advance_all();
  Result<void> wait(double deadline_s);

  Fd listener_;
  const Identity* self_;
  AcceptorLimits limits_;
  std::vector<Pending> pending_;  // in the order in which they came
  std::string last_refusal_;
  bool refused_a_hello_ = false;
};

}  // namespace remuda::comm
