// Ports of this host alone, on which processes meet that one of them has started.
#pragma once

#include "base/file.h"
#include "base/result.h"

namespace remuda {

struct Listener {
  Fd socket;
  int port = 0;
};

/// Listens on 127.0.0.1; port 0 takes a free one. The socket is passed to who listens there, so that no other process
/// can take the port in between. A port in use is a usage error that names it.
Result<Listener> listen_on_loopback(int port);

/// A port of 127.0.0.1 for a program that listens by itself, later, and to which no socket can be passed. Nobody
/// listens there now, and the kernel gives it to no connection that somebody makes in between: it is outside of the
/// range of net.ipv4.ip_local_port_range, unless that range leaves nothing.
Result<int> free_port();

}  // namespace remuda
