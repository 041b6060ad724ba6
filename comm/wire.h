// Sockets for which every wait has a deadline.
//
// All sockets made here are non-blocking, close-on-exec and without Nagle's delay. Deadlines are seconds on
// steady_clock(). A peer that closed, reset or stayed silent is ErrorKind::lost_peer without a rank: the caller knows
// it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace remuda::comm {

struct Endpoint {
  std::string address;  ///< IPv4, IPv6 or a host's name
  int port = 0;
  /// "127.0.0.1:29500", "[::1]:29500".
  std::string text() const;
};

/// The deadline `seconds` from now.
double deadline_after(double seconds);

/// Listens; port 0 takes any free one. A port in use is a usage error that names it.
Result<Fd> listen_on(const Endpoint& endpoint);

/// Takes over a listening socket that another process made. An error if `fd` is not one.
Result<Fd> adopt_listener(Fd fd);

/// Where a socket is bound, and where its other end is; empty when the socket has none.
Endpoint local_endpoint(int fd);
Endpoint remote_endpoint(int fd);

/// One waiting connection, or an empty Fd when none is waiting. Never blocks.
Fd accept_waiting(int listener);

/// Connects; tries again while no process listens there yet.
Result<Fd> dial(const Endpoint& endpoint, double deadline_s);

/// Waits until poll() reports one of `events` on `fd`; false at the deadline.
bool wait_ready(int fd, short events, double deadline_s);

/// `peer` names the other end in errors.
Result<void> send_all(int fd, std::span<const std::byte> bytes, double deadline_s, std::string_view peer);
Result<void> recv_all(int fd, std::span<std::byte> bytes, double deadline_s, std::string_view peer);

/// One non-blocking step: the bytes moved, 0 when it would block, -1 when the other end is gone. `more`: further bytes
/// are sent at once, so that these may wait for them.
ptrdiff_t send_some(int fd, std::span<const std::byte> bytes, bool more = false);
ptrdiff_t recv_some(int fd, std::span<std::byte> bytes);

/// Repeats `step` until all of `bytes` are moved: step(from) moves some of those from `from` on, as send_some() or
/// recv_some(), and where it would block, poll() reports `events` before it is called again.
Result<void> move_all(int fd, short events, size_t bytes, const std::function<ptrdiff_t(size_t from)>& step,
                      double deadline_s, std::string_view peer);

/// Milliseconds for poll() until the deadline, at most `most`.
int poll_ms(double deadline_s, int most = 60000);

}  // namespace remuda::comm
