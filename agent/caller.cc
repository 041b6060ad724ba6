#include "agent/caller.h"

#include <cerrno>
#include <fmt/format.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/bearer.h"

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

bool is_same_folder(const std::string& one, const char* other) {
  struct stat first{}, second{};
  return ::stat(one.c_str(), &first) == 0 && ::stat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

/// Or that of the first process, where the agent is in a container.
bool shares_root(int pid) {
  const std::string root = fmt::format("/proc/{}/root/", pid);
  return is_same_folder(root, "/") || is_same_folder(root, "/proc/1/root/");
}

/// A service has mounts of its own, and what its users see are those of the first process.
bool shares_mounts(int pid) {
  static const auto own = namespace_of("self", "mnt"), first = namespace_of("1", "mnt");
  const auto theirs = namespace_of(std::to_string(pid), "mnt");
  return theirs && (theirs == own || theirs == first);
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

Result<Caller> judge_caller(int uid, const process::ProcessId& process, bool is_of_machine) {
  if (uid == 0 && !is_of_machine)
    return usage_error("root of a container is no administrator of this machine: ask as another user");
  return Caller{uid, uid == 0, process};
}

Result<Caller> caller_of(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return failed(fmt::format("cannot tell who asks: {}", errno_text(errno)));
  const bool is_of_machine = shares_namespaces(peer.pid) && shares_root(peer.pid);
  const auto process = process::process_id(peer.pid);
  const auto slice = slice_owner(read_text(fmt::format("/proc/{}/cgroup", peer.pid)).value_or(""));
  if (!process || peer.pid <= 0 || has_ended(connection))
    return usage_error("the process that connected has ended, or cannot be seen from here");
  REMUDA_ASSIGN(Caller caller, judge_caller(static_cast<int>(peer.uid), *process, is_of_machine));
  const bool is_in_reach = ::geteuid() == 0 || ::geteuid() == peer.uid;
  caller.can_be_started = is_in_reach && is_of_machine && shares_mounts(peer.pid);
  caller.slice = slice;
  return caller;
}

}  // namespace remuda::agent
