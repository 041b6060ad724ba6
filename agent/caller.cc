#include "agent/caller.h"

#include <cerrno>
#include <fmt/format.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace remuda::agent {
namespace {

/// The number of a namespace; nothing where /proc does not show it.
std::optional<ino_t> namespace_of(const std::string& process, const char* kind) {
  struct stat info{};
  if (::stat(fmt::format("/proc/{}/ns/{}", process, kind).c_str(), &info) != 0) return std::nullopt;
  return info.st_ino;
}

bool shares_namespaces(int pid) {
  static const auto own_user = namespace_of("self", "user"), own_pid = namespace_of("self", "pid");
  const std::string process = std::to_string(pid);
  return own_user && own_pid && namespace_of(process, "user") == own_user && namespace_of(process, "pid") == own_pid;
}

/// Whether the process that connected has ended: then its number may be another one's. Before Linux 6.5, nobody knows.
bool has_ended(int connection) {
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD
  int number = -1;
  socklen_t size = sizeof number;
  if (::getsockopt(connection, SOL_SOCKET, kPeerPidfd, &number, &size) != 0) return errno == ESRCH;
  const Fd end(number);
  pollfd polled{end.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace

Result<Caller> judge_caller(int uid, const process::ProcessId& process, bool own_namespaces) {
  if (uid == 0 && !own_namespaces)
    return usage_error("root of a container is no administrator of this machine: ask as another user");
  return Caller{uid, uid == 0, process};
}

Result<Caller> caller_of(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return failed(fmt::format("cannot tell who asks: {}", errno_text(errno)));
  const bool own_namespaces = shares_namespaces(peer.pid);
  const auto process = process::process_id(peer.pid);
  if (!process || peer.pid <= 0 || has_ended(connection))
    return usage_error("the process that connected has ended, or cannot be seen from here");
  return judge_caller(static_cast<int>(peer.uid), *process, own_namespaces);
}

}  // namespace remuda::agent
