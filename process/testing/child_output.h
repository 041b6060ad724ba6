// Tests only: processes to watch, their output, and how they ended.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/child.h"

namespace remuda::process {

constexpr int kTestPatience_ms = 20'000;

/// Waits until `fd` can be read; fails the test when that takes far too long.
inline void await(int fd) {
  pollfd polled{fd, POLLIN, 0};
  ASSERT_EQ(::poll(&polled, 1, kTestPatience_ms), 1) << "nothing happened";
}

/// Readable once any process, not only a child, has ended.
inline Fd watch_process(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

/// Reads until the stream ends.
inline std::string read_to_end(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    await(fd);
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) return text;
    text.append(buffer, got);
  }
}

inline ExitState await_exit(ChildProcess& process) {
  await(process.pidfd());
  return process.exit_state().value_or(ExitState{-1, -1});
}

/// A shell with a child and a grandchild that all wait for ever; it has written "ready" when they are there.
inline ChildProcess family(const Environment& environment = {}) {
  auto process = ChildProcess::spawn(
      {.argv = {"/bin/sh", "-c", "(sleep 1000 & echo ready; wait) & wait"}, .environment = environment});
  EXPECT_TRUE(process) << process.error().message;
  await(process->output());
  return std::move(*process);
}

/// A shell with so many children that wait for ever, and are there; it outlives them.
inline ChildProcess crowd(int children) {
  auto process = ChildProcess::spawn({.argv = {"/bin/sh", "-c",
                                               "for i in $(seq " + std::to_string(children) +
                                                   "); do sleep 1000 & done; echo; wait; exec sleep 1000"}});
  EXPECT_TRUE(process) << process.error().message;
  await(process->output());
  return std::move(*process);
}

}  // namespace remuda::process
