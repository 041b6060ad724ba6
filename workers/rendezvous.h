// What a job's ranks need to find each other: a listening socket and a secret.
#pragma once

#include <string>

#include "base/file.h"
#include "base/result.h"

namespace remuda::workers {

struct Listener {
  Fd socket;
  int port = 0;
};

/// Listens on 127.0.0.1; port 0 takes a free one. The socket is passed to rank 0, so that no other process can take the
/// port in between. A port in use is a usage error that names it.
Result<Listener> listen_on_loopback(int port);

/// 32 bytes from the kernel's random source, in hexadecimal.
Result<std::string> make_secret();

}  // namespace remuda::workers
