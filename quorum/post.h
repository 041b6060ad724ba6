// Post: a rank's socket for datagrams (UDP), which other ranks reach while the connections between them come and go.
//
// A datagram may be lost, come twice or late; who sent it, only its content can show.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "comm/wire.h"

namespace remuda::quorum {

class Post {
 public:
  /// At any free port of an address of this host, or of the one that a name has.
  static Result<Post> open(const std::string& address);

  const comm::Endpoint& endpoint() const { return endpoint_; }
  /// Never blocks. Whether it arrives is not known; false where no way leads there now.
  bool send(const comm::Endpoint& to, std::string_view bytes) const;
  /// The next datagram, or nothing when there is none now. Never blocks.
  std::optional<std::string> receive() const;
  /// Where datagrams could not go, as hosts and routers have said since the last call: no process has that port, or no
  /// way leads there.
  std::vector<comm::Endpoint> undelivered() const;
  /// Until there is something to receive, or to say of what was undelivered; or until the deadline.
  void wait(double deadline_s) const;

 private:
  Post(Fd socket, comm::Endpoint endpoint) : socket_(std::move(socket)), endpoint_(std::move(endpoint)) {}
  Fd socket_;
  comm::Endpoint endpoint_;
};

}  // namespace remuda::quorum
