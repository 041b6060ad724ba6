#include "run/front.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/spawn.h"
#include "process/tree.h"
#include "run/caretaker.h"
#include "run/keeper.h"

namespace remuda::run {
namespace {

constexpr double kOrphansPatience_s = 10;

std::vector<int> own_children() {
  std::vector<int> children;
  siginfo_t info;
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return children;  // no children, the usual case
  for (const process::ProcessId& process : process::descendants(::getpid())) children.push_back(process.pid);
  return children;
}

/// The keeper was killed: this process, a subreaper, has inherited the job's processes.
int end_without_keeper(const OpenPool& open, const std::vector<int>& before, const Report& report) {
  process::kill_all([&] { return process::descendants(::getpid(), before); }, kOrphansPatience_s);
  auto caretaker = open();
  if (caretaker) (void)caretaker->tidy();
  report({Message::Kind::ended, 0, process::kOwnFailure, "its keeper was killed, and the job with it"});
  return process::kOwnFailure;
}

}  // namespace

Result<int> run_front(const RunSpec& spec, const OpenPool& open, const Report& report) {
  const std::vector<int> before = own_children();
  HeldSignals signals;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const Inherited inherited{::getpgrp(), signals.before()};
  REMUDA_ASSIGN(const Worker keeper, fork_worker([&](Fd front) { keep(spec, open, std::move(front), inherited); }));
  const auto last = relay(keeper, &signals, [&](const Message& message) {
    report(message);
    return message.kind == Message::Kind::ended;
  });
  if (last) return last->status;
  ::waitpid(keeper.pid, nullptr, 0);
  return end_without_keeper(open, before, report);
}

}  // namespace remuda::run
