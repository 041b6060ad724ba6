// Server: the page and its data over HTTP, for those who have the token.
//
// A thread per client, of which there are only so many. What each may take of it, in bytes and in time, is bounded
// (connection.h), so one that is slow or hostile keeps nobody else from an answer; and where all places are taken,
// those who have not shown the token make room.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/source.h"

namespace remuda::web {

struct ServerOptions {
  std::string address = "127.0.0.1";  ///< numeric; beyond loopback only with a certificate
  int port = 0;                       ///< 0: any that is free
  std::string token;                  ///< see make_token()
  std::string certificate, key;       ///< files; empty: no TLS
  std::vector<std::string> names;     ///< by which browsers may call it, beside addresses, localhost and the host's own
  std::string embed_origin;           ///< https://host[:port] whose pages may show this one; empty: nobody's
  size_t most_clients = 256;
  double period_s = 1;  ///< the least time between two snapshots
};

class Server {
 public:
  /// Listens. `source` outlives it. A usage error where the address cannot be had, or is not permitted.
  static Result<std::unique_ptr<Server>> open(ServerOptions options, snapshot::Source& source);
  virtual ~Server() = default;

  /// Where the page is, with the token behind "#", which browsers keep to themselves.
  virtual std::string url() const = 0;
  virtual int port() const = 0;
  /// Answers until `stop` is readable, in the sense of poll; then all clients are let go.
  virtual void serve(int stop) = 0;
};

}  // namespace remuda::web
