#include "process/stop_signals.h"

#include <cerrno>
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace remuda::process {

Result<StopSignals> StopSignals::hold() {
  sigset_t stop, before;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGINT);
  ::sigaddset(&stop, SIGTERM);
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
