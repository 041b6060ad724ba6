// Tests only: two sockets that are joined to each other.
#pragma once

#include <stdexcept>
#include <sys/socket.h>

#include "base/file.h"

namespace remuda::comm {

/// Both non-blocking, as those of comm/wire.h.
struct SocketPair {
  SocketPair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
      throw std::runtime_error("no pair of sockets");
    first.reset(fds[0]);
    second.reset(fds[1]);
  }
  Fd first, second;
};

}  // namespace remuda::comm
