#include "run/relay.h"

#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "run/front_link.h"

namespace remuda::run {

Result<Worker> fork_worker(const std::function<void(Fd)>& work) {
  REMUDA_ASSIGN(Channel channel, make_channel());
  const pid_t pid = ::fork();
  if (pid < 0) return failed(fmt::format("cannot start a process: {}", errno_text(errno)));
  if (pid == 0) {
    channel.front.reset();
    work(std::move(channel.keeper));
    ::_exit(0);
  }
  return Worker{pid, std::move(channel.front)};
}

HeldSignals::HeldSignals() {
  const sigset_t relayed = relayed_signals();
  struct sigaction hangup{};
  ignores_hangup_ = ::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
  ::pthread_sigmask(SIG_BLOCK, &relayed, &before_);
  fd_.reset(::signalfd(-1, &relayed, SFD_CLOEXEC | SFD_NONBLOCK));
}

HeldSignals::~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::optional<ReceivedSignal> HeldSignals::next() {
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number != SIGHUP || !ignores_hangup_) return ReceivedSignal{number, info.ssi_code == SI_KERNEL};
  }
  return std::nullopt;
}

std::optional<Message> relay(const Worker& worker, HeldSignals* signals,
                             const std::function<bool(const Message&)>& take, int end) {
  const int channel = worker.channel.get();
  for (;;) {
    pollfd polled[] = {{channel, POLLIN, 0}, {signals ? signals->fd() : -1, POLLIN, 0}, {end, POLLIN, 0}};
    ::poll(polled, 3, -1);
    if (polled[2].revents != 0) return std::nullopt;
    while (signals) {
      const auto signal = signals->next();
      if (!signal) break;
      send(channel, *signal);
      ::kill(worker.pid, SIGCONT);  // a stopped process could not handle the signal
    }
    Received<Message> received = receive_message(channel);
    if (received.gone) return std::nullopt;
    if (received.value && take(*received.value)) return std::move(received.value);
  }
}

}  // namespace remuda::run
