#include "process/terminal.h"

#include <csignal>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace remuda::process {
namespace {

constexpr int kTerminalPatience_ms = 30'000;

/// How `work` ends on a terminal of its own, which is closed once it has written "r".
int status_at_terminal(const std::function<int()>& work, bool hears_hangup = true) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    sigset_t hangup;
    ::sigemptyset(&hangup);
    ::sigaddset(&hangup, SIGHUP);
    ::sigprocmask(SIG_BLOCK, &hangup, nullptr);
    if (!hears_hangup) ::signal(SIGHUP, SIG_IGN);
    ::_exit(work());
  }
  pollfd polled{terminal, POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, kTerminalPatience_ms), 1);
  ::close(terminal);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void say_ready() { (void)!::write(STDOUT_FILENO, "r", 1); }

TEST(Terminal, IsClosedWhenItsOtherEndIs) {
  EXPECT_EQ(status_at_terminal([] {
              const Terminal terminal = Terminal::of_caller();
              if (terminal.is_closed()) return 1;
              say_ready();
              pollfd polled{terminal.closing(), POLLIN, 0};
              return ::poll(&polled, 1, kTerminalPatience_ms) == 1 && terminal.is_closed() ? 0 : 2;
            }),
            0);
}

TEST(Terminal, IsNotMistakenForClosedWhenSomebodyTypes) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    const Terminal own = Terminal::of_caller();
    pollfd typed{STDIN_FILENO, POLLIN, 0};
    const bool is_typed = ::poll(&typed, 1, kTerminalPatience_ms) == 1;
    ::_exit(is_typed && !own.is_closed() ? 0 : 1);
  }
  EXPECT_EQ(::write(terminal, "x\n", 2), 2);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(terminal);
  EXPECT_EQ(status, 0);
}

TEST(Terminal, IsNoneForAProcessThatIgnoresItsEnd) {
  EXPECT_EQ(status_at_terminal(
                [] {
                  const Terminal terminal = Terminal::of_caller();
                  say_ready();
                  return terminal.closing() == -1 && !terminal.is_closed() ? 0 : 1;
                },
                false),
            0);
}

TEST(Terminal, GivesTheForegroundOfAGroupThatIsGoneToAnother) {
  EXPECT_EQ(status_at_terminal([] {
              ::signal(SIGTTOU, SIG_IGN);
              const pid_t own = ::getpgrp(), other = ::fork();
              if (other == 0) {
                ::setpgid(0, 0);
                ::tcsetpgrp(STDIN_FILENO, ::getpid());
                ::_exit(0);
              }
              ::waitpid(other, nullptr, 0);
              if (::tcgetpgrp(STDIN_FILENO) == own) return 1;
              Terminal::of_caller().give_to(own, {});
              const bool is_ours = ::tcgetpgrp(STDIN_FILENO) == own;
              say_ready();
              return is_ours ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace remuda::process
