#include "web/connection.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"

namespace remuda::web {
namespace {

constexpr ssize_t kClosed = -1000;

/// Whether one of the events came before the deadline.
bool await(int fd, short events, double deadline_s) {
  for (;;) {
    const double left_ms = std::ceil((deadline_s - monotonic_s()) * 1000);
    if (left_ms <= 0) return false;
    pollfd one{fd, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(left_ms));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool is_ready(int fd, short events) {
  pollfd one{fd, events, 0};
  return ::poll(&one, 1, 0) > 0;
}

ssize_t socket_result(ssize_t moved, short events) {
  if (moved >= 0) return moved;
  if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) return -events;
  return kClosed;
}

}  // namespace

Connection::Connection(Fd socket, SSL_CTX* tls)
    : socket_(std::move(socket)), tls_(tls ? ::SSL_new(tls) : nullptr, &::SSL_free) {
  if (tls_) ::SSL_set_fd(tls_.get(), socket_.get());
}

Connection::~Connection() {
  if (tls_) ::SSL_shutdown(tls_.get());  // says good-bye; its answer is not waited for
  ::ERR_clear_error();
}

bool Connection::open() {
  if (!tls_) return true;
  const auto shake = [this]() -> ssize_t {
    const int result = ::SSL_accept(tls_.get());
    return result == 1 ? 1 : tls_events(result);
  };
  return transfer(shake, monotonic_s() + kRequest_s) > 0;
}

bool Connection::next_request() {
  left_ = kMostRequestBytes;
  if (begin_ == end_ && !fill(monotonic_s() + kIdle_s)) return false;
  deadline_s_ = monotonic_s() + kRequest_s;
  return true;
}

bool Connection::is_readable() const { return begin_ < end_ || is_ready(socket_.get(), POLLIN); }
bool Connection::is_writable() const { return await(socket_.get(), POLLOUT, monotonic_s() + kAnswer_s); }

ssize_t Connection::read(char* to, size_t size) {
  if (left_ == 0) return -1;
  if (begin_ == end_ && !fill(deadline_s_)) return -1;
  const size_t taken = std::min({size, end_ - begin_, left_});
  std::memcpy(to, &buffer_[begin_], taken);
  begin_ += taken;
  left_ -= taken;
  return static_cast<ssize_t>(taken);
}

ssize_t Connection::write(const char* from, size_t size) {
  const double deadline_s = monotonic_s() + kAnswer_s;
  for (size_t sent = 0; sent < size;) {
    const ssize_t some = transfer([&] { return send(from + sent, size - sent); }, deadline_s);
    if (some <= 0) return -1;
    sent += static_cast<size_t>(some);
  }
  return static_cast<ssize_t>(size);
}

/// Nobody asks: whoever may come in has the token, from wherever.
void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}
void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

ssize_t Connection::transfer(const std::function<ssize_t()>& move, double deadline_s) {
  for (;;) {
    const ssize_t result = move();
    if (result >= 0) return result;
    if (result == kClosed || !await(socket_.get(), static_cast<short>(-result), deadline_s)) return -1;
  }
}

ssize_t Connection::receive(char* to, size_t size) {
  if (!tls_) return socket_result(::recv(socket_.get(), to, size, 0), POLLIN);
  const int result = ::SSL_read(tls_.get(), to, static_cast<int>(size));
  return result > 0 ? result : tls_events(result);
}

ssize_t Connection::send(const char* from, size_t size) {
  if (!tls_) return socket_result(::send(socket_.get(), from, size, MSG_NOSIGNAL), POLLOUT);
  const int result = ::SSL_write(tls_.get(), from, static_cast<int>(std::min<size_t>(size, 1 << 20)));
  return result > 0 ? result : tls_events(result);
}

ssize_t Connection::tls_events(int result) const {
  const int error = ::SSL_get_error(tls_.get(), result);
  ::ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ) return -POLLIN;
  if (error == SSL_ERROR_WANT_WRITE) return -POLLOUT;
  return error == SSL_ERROR_ZERO_RETURN ? 0 : kClosed;
}

bool Connection::fill(double deadline_s) {
  begin_ = end_ = 0;
  const ssize_t got = transfer([this] { return receive(buffer_.data(), buffer_.size()); }, deadline_s);
  if (got <= 0) return false;
  end_ = static_cast<size_t>(got);
  return true;
}

}  // namespace remuda::web
