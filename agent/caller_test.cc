#include "agent/caller.h"

#include <algorithm>
#include <csignal>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"

namespace remuda::agent {
namespace {

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    here.reset(fds[0]);
    there.reset(fds[1]);
  }
  Fd here, there;
};

TEST(Caller, IsWhoTheKernelSays) {
  const Pair pair;
  const auto caller = caller_of(pair.here.get());
  ASSERT_TRUE(caller) << caller.error().message;
  EXPECT_EQ(caller->uid, static_cast<int>(::geteuid()));
  EXPECT_EQ(caller->process, process::own_process_id());
  EXPECT_EQ(caller->is_admin, ::geteuid() == 0);
  EXPECT_TRUE(caller->can_be_started);
}

TEST(Caller, RootIsAnAdministratorOnlyOfTheAgentsOwnMachine) {
  const process::ProcessId process = process::own_process_id();
  EXPECT_TRUE(judge_caller(0, process, true)->is_admin);
  EXPECT_FALSE(judge_caller(1000, process, true)->is_admin);
  EXPECT_FALSE(judge_caller(100000, process, false)->is_admin) << "root of a container with users of its own";
  const auto refused = judge_caller(0, process, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "root of a container is no administrator of this machine: ask as another user");
}

/// A process that is the first of a namespace of process ids connects, and stays until the connection is closed.
[[noreturn]] void connect_from_a_container(const sockaddr_un& address) {
  if (::unshare(CLONE_NEWPID) != 0) ::_exit(1);
  const pid_t inner = ::fork();
  if (inner == 0) {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    char byte = 0;
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      (void)!::read(socket, &byte, 1);
    ::_exit(0);
  }
  ::waitpid(inner, nullptr, 0);
  ::_exit(0);
}

sockaddr_un address_in(const ScratchFolder& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

Fd listen_at(const sockaddr_un& address) {
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  return listener;
}

TEST(Caller, RootOfAContainerIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a namespace of process ids";
  const ScratchFolder folder;
  const sockaddr_un address = address_in(folder);
  const Fd listener = listen_at(address);
  const pid_t child = ::fork();
  if (child == 0) connect_from_a_container(address);
  {
    const timeval patience{10, 0};
    ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const Fd connection(::accept(listener.get(), nullptr, nullptr));
    ASSERT_TRUE(connection) << "may not make namespaces here";
    const auto caller = caller_of(connection.get());
    ASSERT_FALSE(caller);
    EXPECT_EQ(caller.error().message, "root of a container is no administrator of this machine: ask as another user");
  }
  ::waitpid(child, nullptr, 0);
}

/// As of a container that has the host's process ids.
TEST(Caller, RootOfAnotherTreeOfFilesIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can have another tree of files";
  const ScratchFolder folder;
  const sockaddr_un address = address_in(folder);
  const Fd listener = listen_at(address);
  const pid_t child = ::fork();
  if (child == 0) {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) ::_exit(1);
    char byte = 0;
    (void)!(::chroot(folder.path("").c_str()) == 0 && ::read(socket, &byte, 1) == 0);
    ::_exit(0);
  }
  {
    const Fd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(connection);
    Result<Caller> caller = caller_of(connection.get());
    for (int i = 0; i < 2000 && caller; ++i) {  // until it has changed its root
      ::usleep(5000);
      caller = caller_of(connection.get());
    }
    ASSERT_FALSE(caller);
    EXPECT_EQ(caller.error().message, "root of a container is no administrator of this machine: ask as another user");
  }
  ::waitpid(child, nullptr, 0);
}

/// A child with that number, which ends with its parent; 0 where the kernel does not give it.
pid_t child_with_number(pid_t number) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<uint64_t>(&number);
  arguments.set_tid_size = 1;
  const long child = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  return static_cast<pid_t>(std::max(child, 0L));
}

TEST(Caller, OneWhoseNumberAnotherProcessHasIsRefused) {
  const ScratchFolder folder;
  const sockaddr_un address = address_in(folder);
  const Fd listener = listen_at(address);
  const pid_t connects = ::fork();
  if (connects == 0) {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ::_exit(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address));
  }
  ::waitpid(connects, nullptr, 0);
  const Fd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(connection);
  int number = -1;
  socklen_t size = sizeof number;
  constexpr int kPeerPidfd = 77;
  if (::getsockopt(connection.get(), SOL_SOCKET, kPeerPidfd, &number, &size) != 0 && errno == ENOPROTOOPT)
    GTEST_SKIP() << "this kernel does not report it";
  const Fd end(number);
  const pid_t other = child_with_number(connects);
  if (other == 0) GTEST_SKIP() << "may not choose the number of a process";
  EXPECT_EQ(other, connects);
  EXPECT_FALSE(caller_of(connection.get()));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}

TEST(Caller, OneThatHasEndedIsRefused) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  ::close(sockets[0]);
  ::close(sockets[1]);
  EXPECT_FALSE(caller_of(sockets[0]));
}

}  // namespace
}  // namespace remuda::agent
