#include "comm/wire.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"

namespace remuda::comm {
namespace {

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first) ::freeaddrinfo(first);
  }
};

Result<void> resolve(const Endpoint& endpoint, int flags, Addresses& found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  const std::string port = fmt::format("{}", endpoint.port);
  const int error = ::getaddrinfo(endpoint.address.c_str(), port.c_str(), &hints, &found.first);
  if (error != 0)
    return usage_error(fmt::format("cannot find the address '{}': {}", endpoint.address, ::gai_strerror(error)));
  return {};
}

Fd open_socket(const addrinfo& address) {
  return Fd(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void without_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Endpoint endpoint_of(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {text, ntohs(v4.sin_port)};
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return {text, ntohs(v6.sin6_port)};
  }
  return {};
}

template <typename Call>
Endpoint ask_endpoint(Call call, int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (call(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return endpoint_of(storage);
}

// On loopback a socket that dials a free port of the ephemeral range can be connected to itself.
bool is_connected_to_itself(int fd) { return local_endpoint(fd).text() == remote_endpoint(fd).text(); }

// 0, or the errno that ended the attempt.
int try_connect(const addrinfo& address, double deadline_s, Fd& connected) {
  Fd fd = open_socket(address);
  if (!fd) return errno;
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_ready(fd.get(), POLLOUT, deadline_s)) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return error;
  }
  if (is_connected_to_itself(fd.get())) return ECONNREFUSED;
  without_delay(fd.get());
  connected = std::move(fd);
  return 0;
}

tl::unexpected<Error> lost(std::string message) {
  return tl::unexpected(Error{ErrorKind::lost_peer, std::move(message), -1});
}

}  // namespace

std::string Endpoint::text() const {
  return address.find(':') == std::string::npos ? fmt::format("{}:{}", address, port)
                                                : fmt::format("[{}]:{}", address, port);
}

double deadline_after(double seconds) { return monotonic_s() + seconds; }

int poll_ms(double deadline_s, int most) {
  const double left_ms = std::ceil((deadline_s - monotonic_s()) * 1000);
  return static_cast<int>(std::clamp(left_ms, 0.0, static_cast<double>(most)));
}

Result<Fd> listen_on(const Endpoint& endpoint) {
  Addresses addresses;
  REMUDA_TRY(resolve(endpoint, AI_PASSIVE, addresses));
  Fd fd = open_socket(*addresses.first);
  const int on = 1;
  if (fd && ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      ::bind(fd.get(), addresses.first->ai_addr, addresses.first->ai_addrlen) == 0 &&
      ::listen(fd.get(), SOMAXCONN) == 0)
    return fd;
  const char* advice = errno == EADDRINUSE ? "; choose another port" : "";
  return usage_error(fmt::format("cannot listen on {}: {}{}", endpoint.text(), errno_text(errno), advice));
}

Result<Fd> adopt_listener(Fd fd) {
  int listening = 0;
  socklen_t length = sizeof listening;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || !listening)
    return usage_error(fmt::format("descriptor {} is not a listening socket", fd.get()));
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  return fd;
}

Endpoint local_endpoint(int fd) { return ask_endpoint(::getsockname, fd); }
Endpoint remote_endpoint(int fd) { return ask_endpoint(::getpeername, fd); }

Fd accept_waiting(int listener) {
  Fd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) without_delay(fd.get());
  return fd;
}

Result<Fd> dial(const Endpoint& endpoint, double deadline_s) {
  Addresses addresses;
  REMUDA_TRY(resolve(endpoint, 0, addresses));
  for (double pause_s = 0.01;; pause_s = std::min(0.25, pause_s * 2)) {
    Fd fd;
    int error = 0;
    for (const addrinfo* address = addresses.first; address && !fd; address = address->ai_next)
      error = try_connect(*address, deadline_s, fd);
    if (fd) return fd;
    const double left_s = deadline_s - monotonic_s();
    if (left_s <= 0) return lost(fmt::format("cannot connect to {}: {}", endpoint.text(), errno_text(error)));
    steady_clock().sleep_s(std::min(pause_s, left_s));
  }
}

bool wait_ready(int fd, short events, double deadline_s) {
  pollfd waited{fd, events, 0};
  for (;;) {
    const int ready = ::poll(&waited, 1, poll_ms(deadline_s));
    if (ready > 0) return true;
    if (monotonic_s() >= deadline_s) return false;
  }
}

ptrdiff_t send_some(int fd, std::span<const std::byte> bytes, bool more) {
  const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0));
  if (sent >= 0) return sent;
  return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

ptrdiff_t recv_some(int fd, std::span<std::byte> bytes) {
  const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
  if (got > 0) return got;
  return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

Result<void> move_all(int fd, short events, size_t bytes, const std::function<ptrdiff_t(size_t from)>& step,
                      double deadline_s, std::string_view peer) {
  for (size_t from = 0; from < bytes;) {
    const ptrdiff_t moved = step(from);
    if (moved < 0) return lost(fmt::format("{} closed the connection", peer));
    if (moved == 0 && !wait_ready(fd, events, deadline_s)) return lost(fmt::format("{} did not answer in time", peer));
    from += static_cast<size_t>(moved);
  }
  return {};
}

Result<void> send_all(int fd, std::span<const std::byte> bytes, double deadline_s, std::string_view peer) {
  const auto step = [&](size_t from) { return send_some(fd, bytes.subspan(from)); };
  return move_all(fd, POLLOUT, bytes.size(), step, deadline_s, peer);
}

Result<void> recv_all(int fd, std::span<std::byte> bytes, double deadline_s, std::string_view peer) {
  const auto step = [&](size_t from) { return recv_some(fd, bytes.subspan(from)); };
  return move_all(fd, POLLIN, bytes.size(), step, deadline_s, peer);
}

}  // namespace remuda::comm
