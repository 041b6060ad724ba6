#include "process/terminal.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace remuda::process {

Terminal Terminal::of_caller() {
  Terminal terminal;
  struct sigaction hangup{};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_IGN) return terminal;
  terminal.terminal_.reset(::open("/dev/tty", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!terminal.terminal_) return terminal;
  // Input is not read here: an epoll that requests no event reports only the hang-up.
  terminal.closing_.reset(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event nothing{};
  if (!terminal.closing_ ||
      ::epoll_ctl(terminal.closing_.get(), EPOLL_CTL_ADD, terminal.terminal_.get(), &nothing) != 0)
    terminal.closing_.reset();
  return terminal;
}

bool Terminal::is_closed() const {
  pollfd polled{closing_.get(), POLLIN, 0};
  return closing_ && ::poll(&polled, 1, 0) == 1;
}

void Terminal::give_to(int group, const std::vector<ProcessId>& processes) const {
  const pid_t foreground = terminal_ ? ::tcgetpgrp(terminal_.get()) : -1;
  if (foreground <= 0 || foreground == group) return;
  const bool is_gone = ::kill(-foreground, 0) != 0 && errno == ESRCH;
  const bool is_theirs =
      std::ranges::any_of(processes, [&](const ProcessId& process) { return ::getpgid(process.pid) == foreground; });
  if (is_gone || is_theirs) ::tcsetpgrp(terminal_.get(), group);
}

}  // namespace remuda::process
