#include "base/listener.h"

#include <arpa/inet.h>
#include <cerrno>
#include <fmt/format.h>
#include <fstream>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>

namespace remuda {
namespace {

struct PortRange {
  int first = 32768, last = 60999;  // the kernel's own choice

  [[nodiscard]] bool contains(int port) const { return port >= first && port <= last; }
};

PortRange ports_of_connections() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  PortRange range;
  if (int first = 0, last = 0; file >> first >> last) range = {first, last};
  return range;
}

}  // namespace

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

Result<int> free_port() {
  constexpr int kTries = 200;  // more than a third of them are outside of the kernel's own range
  const PortRange connections = ports_of_connections();
  std::random_device random;
  std::uniform_int_distribution<int> ports(20000, 65535);  // below 20000 are those of well-known services
  for (int tried = 0; tried < kTries; ++tried)
    if (const int port = ports(random); !connections.contains(port) && listen_on_loopback(port)) return port;
  REMUDA_ASSIGN(const Listener any, listen_on_loopback(0));
  return any.port;
}

}  // namespace remuda
