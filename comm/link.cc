#include "comm/link.h"

#include <poll.h>
#include <sys/socket.h>

#include "comm/wire.h"

namespace remuda::comm {

Result<void> Link::encrypt(Tls::End end, const Tls::Key& key, double deadline_s, const std::string& peer) {
  REMUDA_ASSIGN(tls_, Tls::connect(fd_.get(), end, key, deadline_s, peer));
  return {};
}

ptrdiff_t Link::send_some(std::span<const std::byte> bytes, bool more) const {
  return tls_ ? tls_->send_some(bytes) : comm::send_some(fd_.get(), bytes, more);
}

ptrdiff_t Link::recv_some(std::span<std::byte> bytes) const {
  return tls_ ? tls_->recv_some(bytes) : comm::recv_some(fd_.get(), bytes);
}

Result<void> Link::send_all(std::span<const std::byte> bytes, double deadline_s, std::string_view peer) const {
  const auto step = [&](size_t from) { return send_some(bytes.subspan(from)); };
  return move_all(fd_.get(), POLLOUT, bytes.size(), step, deadline_s, peer);
}

Result<void> Link::recv_all(std::span<std::byte> bytes, double deadline_s, std::string_view peer) const {
  const auto step = [&](size_t from) { return recv_some(bytes.subspan(from)); };
  return move_all(fd_.get(), POLLIN, bytes.size(), step, deadline_s, peer);
}

void Link::hang_up() const { ::shutdown(fd_.get(), SHUT_WR); }

}  // namespace remuda::comm
