#include "run/held_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "run/front_link.h"

namespace remuda::run {

HeldSignals::HeldSignals() {
  const sigset_t relayed = relayed_signals();
  ::pthread_sigmask(SIG_BLOCK, &relayed, &before_);
  fd_.reset(::signalfd(-1, &relayed, SFD_CLOEXEC | SFD_NONBLOCK));
}

HeldSignals::~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::optional<SignalNews> HeldSignals::next() {
  signalfd_siginfo info;
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return SignalNews{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace remuda::run
