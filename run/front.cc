#include "run/front.h"

#include <cerrno>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/spawn.h"
#include "run/caretaker.h"
#include "run/held_signals.h"
#include "run/keeper.h"
#include "run/orphans.h"

namespace remuda::run {
namespace {

constexpr double kKillPatience_s = 10;

std::vector<int> own_children() {
  std::vector<int> children;
  siginfo_t info;
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return children;  // none, as nearly always
  for (const process::ProcessId& process : process::descendants(::getpid())) children.push_back(process.pid);
  return children;
}

/// Until the keeper has said its last; nothing when it died without.
std::optional<int> relay(int keeper, HeldSignals& signals, const std::function<void(const Message&)>& tell) {
  for (;;) {
    pollfd polled[] = {{keeper, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    ::poll(polled, 2, -1);
    while (const auto news = signals.next()) send(keeper, *news);
    const Received<Message> received = receive_message(keeper);
    if (received.gone) return std::nullopt;
    if (!received.value) continue;
    tell(*received.value);
    if (received.value->kind == Message::Kind::ended) return received.value->status;
  }
}

/// The keeper is gone before its time: what it kept has fallen to this process.
int end_without_keeper(const RunSpec& spec, const std::vector<int>& before,
                       const std::function<void(const Message&)>& tell) {
  process::kill_all([&] { return process::descendants(::getpid(), before); }, kKillPatience_s);
  auto caretaker = Caretaker::open(spec.pool, spec.look, spec.live);
  if (caretaker) (void)caretaker->tidy();
  tell({Message::Kind::ended, 0, process::kOwnFailure, "its keeper was killed, and the job with it"});
  return process::kOwnFailure;
}

}  // namespace

Result<int> run_front(const RunSpec& spec, const std::function<void(const Message&)>& tell) {
  const std::vector<int> before = own_children();
  REMUDA_ASSIGN(Channel channel, make_channel());
  HeldSignals signals;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const Inherited inherited{::getpgrp(), signals.before()};
  const pid_t keeper = ::fork();
  if (keeper < 0) return failed(fmt::format("cannot start a process: {}", errno_text(errno)));
  if (keeper == 0) {
    channel.front.reset();
    keep(spec, std::move(channel.keeper), inherited);
    ::_exit(0);
  }
  channel.keeper.reset();
  const std::optional<int> status = relay(channel.front.get(), signals, tell);
  if (!status) ::waitpid(keeper, nullptr, 0);
  return status ? *status : end_without_keeper(spec, before, tell);
}

}  // namespace remuda::run
