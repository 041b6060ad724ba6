#include "workers/rendezvous.h"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

namespace remuda::workers {

Result<Listener> listen_on_loopback(int port) {
  const auto refuse = [&](int error) {
    return usage_error(fmt::format("cannot listen on 127.0.0.1, port {}: {}", port, errno_text(error)));
  };
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return refuse(errno);
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), generic, length) != 0) return refuse(errno);
  if (::listen(socket.get(), SOMAXCONN) != 0) return refuse(errno);
  if (::getsockname(socket.get(), generic, &length) != 0) return refuse(errno);
  return Listener{std::move(socket), ntohs(address.sin_port)};
}

Result<std::string> make_secret() {
  std::array<unsigned char, 32> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return failed(fmt::format("cannot read random bytes: {}", errno_text(errno)));
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace remuda::workers
