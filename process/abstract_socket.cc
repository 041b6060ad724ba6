#include "process/abstract_socket.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sstream>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>

namespace remuda::process {
namespace {

constexpr const char* kSocketList = "/proc/self/net/unix";
constexpr size_t kLargestList = 256 << 20;

/// The request for one socket: the kernel's own message types, one after the other.
struct SocketQuestion {
  nlmsghdr header;
  unix_diag_req request;
};

SocketQuestion question_for(uint32_t inode) {
  SocketQuestion question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_family = AF_UNIX;
  question.request.udiag_states = ~0U;
  question.request.udiag_ino = inode;
  question.request.udiag_show = UDIAG_SHOW_UID | UDIAG_SHOW_NAME;
  question.request.udiag_cookie[0] = question.request.udiag_cookie[1] = ~0U;  // any socket of that inode
  return question;
}

/// What the kernel knows of a socket.
struct Socket {
  std::optional<int> user;
  std::string name;  ///< without the NUL that an abstract one begins with
};

/// In the kernel's answer, attributes follow a fixed part, each preceded by its length and type.
std::optional<Socket> socket_in(const char* bytes, size_t size) {
  nlmsghdr header;
  if (size < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes, sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  Socket socket;
  const size_t end = std::min<size_t>(size, header.nlmsg_len);
  for (size_t at = NLMSG_LENGTH(sizeof(unix_diag_msg)); at + sizeof(nlattr) <= end;) {
    nlattr attribute;
    std::memcpy(&attribute, bytes + at, sizeof attribute);
    if (attribute.nla_len < sizeof attribute || at + attribute.nla_len > end) return std::nullopt;
    const std::string_view value(bytes + at + sizeof attribute, attribute.nla_len - sizeof attribute);
    uint32_t user = 0;
    if (attribute.nla_type == UNIX_DIAG_UID && value.size() == sizeof user) {
      std::memcpy(&user, value.data(), sizeof user);
      socket.user = static_cast<int>(user);
    }
    if (attribute.nla_type == UNIX_DIAG_NAME && !value.empty()) socket.name = value.substr(1);
    at += NLA_ALIGN(attribute.nla_len);
  }
  return socket;
}

/// Nothing where the socket is gone or the kernel does not answer.
std::optional<Socket> socket_of(int kernel, uint32_t inode) {
  const SocketQuestion question = question_for(inode);
  if (kernel < 0 || ::send(kernel, &question, sizeof question, 0) != sizeof question) return std::nullopt;
  std::array<char, 8192> answer;
  const ssize_t got = ::recv(kernel, answer.data(), answer.size(), 0);
  return got > 0 ? socket_in(answer.data(), static_cast<size_t>(got)) : std::nullopt;
}

Fd ask_kernel() {
  Fd kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const timeval patience{1, 0};
  if (kernel) ::setsockopt(kernel.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return kernel;
}

}  // namespace

Result<Fd> hold_name(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() > kLongestSocketName)
    return failed(fmt::format("a socket cannot be named '{}'", name));
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return failed(fmt::format("cannot make a socket: {}", errno_text(errno)));
  ::shutdown(fd.get(), SHUT_RDWR);  // so that no process can send anything to it
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return failed(fmt::format("cannot name a socket '{}': {}", name, errno_text(errno)));
  return fd;
}

Result<std::vector<HeldName>> held_names(const std::string& prefix) {
  REMUDA_ASSIGN(const std::string text, read_text(kSocketList, kLargestList));
  std::vector<HeldName> names;
  const Fd kernel = ask_kernel();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // Num RefCount Protocol Flags Type St Inode Path, where @ begins the name of an abstract one
    if (line.find(" @" + prefix) == std::string::npos) continue;
    std::istringstream words(line);
    std::string skipped, path;
    uint32_t inode = 0;
    for (int i = 0; i < 6; ++i) words >> skipped;
    if (!(words >> inode >> path) || !path.starts_with("@" + prefix)) continue;
    const auto socket = socket_of(kernel.get(), inode);
    if (!socket)
      names.push_back({path.substr(1), std::nullopt});
    else if (socket->name == path.substr(1))
      names.push_back({path.substr(1), socket->user});
  }
  return names;
}

}  // namespace remuda::process
