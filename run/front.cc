#include "run/front.h"

#include <cerrno>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "process/spawn.h"
#include "process/tree.h"
#include "run/at_end.h"
#include "run/caretaker.h"
#include "run/keeper.h"

namespace remuda::run {
namespace {

constexpr double kOrphansPatience_s = 10;
constexpr int kSignalled = 128;  // and the signal's number, as of shells

std::vector<int> own_children() {
  std::vector<int> children;
  siginfo_t info;
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return children;  // no children, the usual case
  for (const process::ProcessId& process : process::descendants(::getpid())) children.push_back(process.pid);
  return children;
}

/// An agent, which has the pool, ends the job a moment after its last process.
void await_end(pool::Access& pool, int64_t id) {
  constexpr double kLook_s = 0.2;
  for (const double end_s = monotonic_s() + kOrphansPatience_s; monotonic_s() < end_s;) {
    const auto job = pool.find(id);
    if (job && (!*job || (*job)->state == pool::JobState::ended)) return;
    if (!job || !pool.wait(id, {}, kLook_s, {})) steady_clock().sleep_s(kLook_s);  // the agent may come back
  }
}

/// A job that outlives its keeper, of which nothing has begun to run: an agent starts another keeper. True also where
/// the pool does not say.
bool is_left_waiting(Result<Caretaker>& caretaker, const RunSpec& spec, int64_t id) {
  if (!spec.job.outlives_keeper || id <= 0) return false;
  const auto job = caretaker ? caretaker->pool().find(id) : tl::unexpected(caretaker.error());
  return !job || (*job && (*job)->outlives_keeper && (*job)->state != pool::JobState::ended && !(*job)->begun);
}

/// The keeper was killed: this process, a subreaper, has inherited the job's processes.
int end_without_keeper(const RunSpec& spec, int64_t job, const OpenPool& open, const std::vector<int>& before,
                       const Report& report) {
  process::kill_all([&] { return process::descendants(::getpid(), before); }, kOrphansPatience_s);
  auto caretaker = open();
  if (caretaker) (void)caretaker->tidy();
  if (is_left_waiting(caretaker, spec, job)) {
    report({Message::Kind::ended, 0, process::kOwnFailure, "its keeper was killed; the agent starts another one"});
    return process::kOwnFailure;
  }
  if (caretaker && job > 0 && has_end_to_report(spec)) {
    await_end(caretaker->pool(), job);
    if (const std::string trouble = report_end(caretaker->pool(), spec, job); !trouble.empty())
      report({Message::Kind::note, job, 0, trouble});
  }
  report({Message::Kind::ended, job, process::kOwnFailure, "its keeper was killed, and the job with it"});
  return process::kOwnFailure;
}

/// Readable, in the sense of poll, once the process that has started this one has ended.
Fd end_of_parent() { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0))); }

bool is_readable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace

Result<int> run_front(const RunSpec& spec, const OpenPool& open, const Report& report, const IsKept& is_kept) {
  const std::vector<int> before = own_children();
  const Fd parent_end = spec.with_parent ? end_of_parent() : Fd();
  if (spec.with_parent && !parent_end)
    return failed(fmt::format("cannot watch the process that started this one: {}", errno_text(errno)));
  HeldSignals signals;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const Inherited inherited{::getpgrp(), signals.before()};
  REMUDA_ASSIGN(const Worker keeper, fork_worker([&](Fd front) { keep(spec, open, std::move(front), inherited); }));
  int64_t job = 0;
  const auto last = relay(
      keeper, &signals,
      [&](const Message& message) {
        if (message.job > 0) job = message.job;
        report(message);
        if (message.kind == Message::Kind::waiting && is_kept && is_kept())
          send(keeper.channel.get(), ReceivedSignal{});
        return message.kind == Message::Kind::ended;
      },
      parent_end.get());
  if (last) return last->status;
  if (is_readable(parent_end.get())) return kSignalled + SIGHUP;  // the keeper ends the job, as this process ends
  ::waitpid(keeper.pid, nullptr, 0);
  return end_without_keeper(spec, job, open, before, report);
}

}  // namespace remuda::run
