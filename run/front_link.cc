#include "run/front_link.h"

#include <cerrno>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace remuda::run {

sigset_t relayed_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::sigaddset(&set, number);
  return set;
}

Result<FrontLink> FrontLink::open(Fd front) {
  sigset_t set = relayed_signals();
  ::sigaddset(&set, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  for (const int number : {SIGPIPE, SIGTTOU, SIGTTIN}) ::signal(number, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // a caller that ignores it would have its children reaped unseen
  Fd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return failed(fmt::format("cannot wait for signals: {}", errno_text(errno)));
  return FrontLink(std::move(front), std::move(signals));
}

void FrontLink::send(Message::Kind kind, int64_t job, const std::string& text, int status) {
  if (front_) run::send(front_.get(), Message{kind, job, status, text});
}

bool FrontLink::has_read_all() const {
  int unread = 0;
  return front_ && ::ioctl(front_.get(), SIOCOUTQ, &unread) == 0 && unread == 0;
}

std::vector<ReceivedSignal> FrontLink::take_signals() {
  std::vector<ReceivedSignal> signals;
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD) signals.push_back({static_cast<int>(info.ssi_signo)});
  while (front_) {
    const Received<ReceivedSignal> received = receive_signal(front_.get());
    if (received.gone) front_.reset();
    if (!received.value) break;
    if (received.value->number == ReceivedSignal::kKept)
      is_kept_ = true;
    else
      signals.push_back(*received.value);
  }
  return signals;
}

std::vector<int> FrontLink::readable() const {
  std::vector<int> fds{signals_.get()};
  if (front_) fds.push_back(front_.get());
  return fds;
}

bool FrontLink::wait(double seconds) const {
  std::vector<pollfd> polled;
  for (const int fd : readable()) polled.push_back({fd, POLLIN, 0});
  return ::poll(polled.data(), polled.size(), static_cast<int>(seconds * 1000)) != 0;
}

}  // namespace remuda::run
