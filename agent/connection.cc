#include "agent/connection.h"

#include <cerrno>
#include <sys/socket.h>
#include <utility>

namespace remuda::agent {
namespace {

/// How long half a request may stand there, and how long an answer may lie unread.
constexpr double kHalfPatience_s = 10, kUnreadPatience_s = 30;

}  // namespace

Connection::Connection(Fd socket, Caller caller, double now_s)
    : socket_(std::move(socket)), caller_(std::move(caller)), active_s_(now_s) {}

bool Connection::read(double now_s) {
  char bytes[16 << 10];
  if (!wants_input()) return true;
  const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got == 0) return false;
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  in_.add({bytes, static_cast<size_t>(got)});
  active_s_ = now_s;
  if (half_since_s_ == 0) half_since_s_ = now_s;
  return true;
}

Result<std::optional<wire::Request>> Connection::next() {
  if (!has_input()) return std::nullopt;
  REMUDA_ASSIGN(const auto payload, in_.next());
  if (!payload) return std::nullopt;
  half_since_s_ = in_.size() > 0 ? active_s_ : 0;
  REMUDA_ASSIGN(wire::Request request, wire::parse_request(*payload));
  is_served_ = true;
  return request;
}

void Connection::send(const wire::Answer& answer, double now_s) {
  std::string text = text_of(answer);
  if (text.size() > wire::kLargestAnswer)
    text = text_of(wire::Answer{.id = answer.id, .error = Error{ErrorKind::failed, "the answer is too large", -1}});
  if (out_.empty()) unread_since_s_ = now_s;
  out_ += wire::frame_of(text);
  is_served_ = false;
  (void)flush(now_s);
}

void Connection::watch(int64_t job) {
  watched_ = job;
  was_told_ = false;
}

void Connection::tell(int64_t job, double now_s) {
  if (job != watched_ || was_told_) return;
  was_told_ = true;
  if (out_.empty()) unread_since_s_ = now_s;
  out_ += wire::frame_of(text_of(wire::Answer{.changed = job}));
  (void)flush(now_s);
}

bool Connection::flush(double now_s) {
  while (!out_.empty()) {
    const ssize_t sent = ::send(socket_.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent <= 0) return sent < 0 && (errno == EAGAIN || errno == EINTR);
    out_.erase(0, static_cast<size_t>(sent));
    unread_since_s_ = now_s;
  }
  out_.shrink_to_fit();
  return true;
}

std::ptrdiff_t Connection::take_growth() {
  const size_t before = std::exchange(counted_, buffered());
  return static_cast<std::ptrdiff_t>(counted_) - static_cast<std::ptrdiff_t>(before);
}

bool Connection::is_over(double now_s) const {
  if (is_last_ && out_.empty()) return true;
  if (!out_.empty() && now_s - unread_since_s_ > kUnreadPatience_s) return true;
  return !is_served_ && out_.empty() && half_since_s_ > 0 && now_s - half_since_s_ > kHalfPatience_s;
}

}  // namespace remuda::agent
