#include "process/stop_signals.h"

#include <cerrno>
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace remuda::process {

namespace {

sigset_t interrupt_and_end() {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGINT);
  ::sigaddset(&stop, SIGTERM);
  return stop;
}

}  // namespace

Result<StopSignals> StopSignals::hold() { return hold(interrupt_and_end()); }

Result<StopSignals> StopSignals::hold_with_hang_up() {
  sigset_t stop = interrupt_and_end();
  struct sigaction action{};
  ::sigaction(SIGHUP, nullptr, &action);
  // The kernel keeps an ignored signal pending if it is also blocked.
  if (action.sa_handler != SIG_IGN) ::sigaddset(&stop, SIGHUP);
  return hold(stop);
}

Result<StopSignals> StopSignals::hold(const sigset_t& stop) {
  sigset_t before;
  Fd fd(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return failed(fmt::format("cannot wait for signals: {}", errno_text(errno)));
  ::pthread_sigmask(SIG_BLOCK, &stop, &before);
  return StopSignals(std::move(fd), before);
}

StopSignals::~StopSignals() {
  if (fd_) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> StopSignals::next() {
  signalfd_siginfo info;
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace remuda::process
