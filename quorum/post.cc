#include "quorum/post.h"

#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <linux/errqueue.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace remuda::quorum {
namespace {

constexpr size_t kLargest = 1 << 16;  // a datagram is smaller
constexpr int kMostErrors = 1024;     // that one call passes over

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const comm::Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  if (::getaddrinfo(endpoint.address.c_str(), fmt::format("{}", endpoint.port).c_str(), &hints, &first) != 0)
    first = nullptr;
  return {first, &::freeaddrinfo};
}

comm::Endpoint endpoint_of(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "0";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, std::stoi(port)};
}

}  // namespace

Result<Post> Post::open(const std::string& address) {
  const auto refuse = [&](const std::string& why) {
    return usage_error(fmt::format("cannot receive datagrams at {}: {}", address, why));
  };
  const Addresses found = resolve({address, 0}, 0);
  if (!found) return refuse("it is no address of a host");
  Fd socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket || ::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0) return refuse(errno_text(errno));
  const int on = 1;
  const bool is_v6 = found->ai_family == AF_INET6;
  ::setsockopt(socket.get(), is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_RECVERR : IP_RECVERR, &on, sizeof on);
  const comm::Endpoint endpoint = comm::local_endpoint(socket.get());
  if (endpoint.address == "0.0.0.0" || endpoint.address == "::")
    return refuse("others must know at which address they reach this rank");
  return Post(std::move(socket), endpoint);
}

bool Post::send(const comm::Endpoint& to, std::string_view bytes) const {
  const Addresses found = resolve(to, AI_NUMERICHOST);
  if (!found) return false;
  // A call may report what became of a datagram before it, and sends nothing then.
  for (int attempt = 0; attempt < 3; ++attempt)
    if (::sendto(socket_.get(), bytes.data(), bytes.size(), 0, found->ai_addr, found->ai_addrlen) >= 0) return true;
  return errno != ENETUNREACH && errno != EHOSTUNREACH;
}

std::optional<std::string> Post::receive() const {
  std::string bytes(kLargest, '\0');
  for (int attempt = 0; attempt < kMostErrors; ++attempt) {
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (got < 0) continue;  // what became of a datagram: undelivered() has it, too
    bytes.resize(static_cast<size_t>(got));
    return bytes;
  }
  return std::nullopt;
}

std::vector<comm::Endpoint> Post::undelivered() const {
  std::vector<comm::Endpoint> all;
  for (int left = kMostErrors; left > 0; --left) {
    sockaddr_storage to{};
    std::array<std::byte, 512> control{};
    std::array<std::byte, 1> content{};
    iovec data{content.data(), content.size()};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(socket_.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return all;
    const comm::Endpoint endpoint = endpoint_of(to, message.msg_namelen);
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
      const bool is_error = (one->cmsg_level == IPPROTO_IP && one->cmsg_type == IP_RECVERR) ||
                            (one->cmsg_level == IPPROTO_IPV6 && one->cmsg_type == IPV6_RECVERR);
      if (!is_error) continue;
      const int error = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(one))->ee_errno;
      if (error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH) all.push_back(endpoint);
    }
  }
  return all;
}

void Post::wait(double deadline_s) const {
  pollfd waited{socket_.get(), POLLIN, 0};
  ::poll(&waited, 1, comm::poll_ms(deadline_s));
}

}  // namespace remuda::quorum
