// Connection: one client's stream: its bytes taken apart into requests, and the answers that it has not read yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/caller.h"
#include "base/file.h"
#include "wire/frame.h"
#include "wire/message.h"

namespace remuda::agent {

/// One thread. Never waits. Times are those of the steady clock.
class Connection {
 public:
  Connection(Fd socket, Caller caller, double now_s);

  const Caller& caller() const { return caller_; }
  int fd() const { return socket_.get(); }

  /// Reads what has come, a bounded part of it. False where the client is gone.
  bool read(double now_s);
  /// Whether more is to be read: what a client sends ahead of its answers stays with the kernel from some size on.
  bool wants_input() const { return in_.size() < wire::kHeader + wire::kLargestRequest; }
  /// The next request, once its answer can be sent: while a client does not read, it is not served. An error for what
  /// is no request: the client is told, and then it is gone.
  Result<std::optional<wire::Request>> next();
  /// Whether next() may give one now.
  bool has_input() const { return !is_served_ && out_.empty() && in_.size() >= wire::kHeader; }

  /// Sends an answer, as far as the client reads.
  void send(const wire::Answer& answer, double now_s);
  /// Word of a change of the job that it watches; once until it asks again.
  void tell(int64_t job, double now_s);
  void watch(int64_t job);
  int64_t watched() const { return watched_; }
  /// Sends more of what is left. False where the client is gone.
  bool flush(double now_s);
  bool has_output() const { return !out_.empty(); }

  /// The request that next() gave last has no answer yet.
  bool is_served() const { return is_served_; }
  /// Whether it is to be closed: it has sent half a request, or has not read an answer, for too long; or it was told
  /// that it sent no request.
  bool is_over(double now_s) const;
  void close_after_answer() { is_last_ = true; }
  /// When it has done something last.
  double active_s() const { return active_s_; }
  size_t buffered() const { return in_.size() + out_.size(); }
  /// By how much that has grown since the last call.
  std::ptrdiff_t take_growth();

 private:
  const Fd socket_;
  const Caller caller_;
  wire::FrameReader in_{wire::kLargestRequest};
  std::string out_;
  int64_t watched_ = 0;
  bool was_told_ = false, is_served_ = false, is_last_ = false;
  double active_s_;
  double half_since_s_ = 0;  ///< since when half a request stands there; 0: none does
  double unread_since_s_ = 0;
  size_t counted_ = 0;  ///< what take_growth() has seen of buffered()
};

}  // namespace remuda::agent
