#include "run/keeper_for.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/spawn.h"
#include "run/job_environment.h"
#include "run/queue_entry.h"

namespace remuda::run {
namespace {

using Kind = Message::Kind;
using Keep = std::function<Result<void>(Caretaker, FrontLink&)>;

Result<void> keep_within(const OpenPool& open, const Keep& keep, FrontLink& link) {
  REMUDA_ASSIGN(Caretaker caretaker, open());
  (void)!::chdir("/");  // what was named by its way from the caller's folder has been found
  REMUDA_TRY(caretaker.pool().become_keeper());
  return keep(std::move(caretaker), link);
}

void work(const OpenPool& open, const Keep& keep, Fd front) {
  ::setsid();
  close_all_but(front.get());  // a lock of the caller's, or a pipe that another process reads to its end
  auto link = FrontLink::open(std::move(front));
  if (!link) return;
  const auto kept = keep_within(open, keep, *link);
  if (!kept) link->send(Kind::ended, 0, kept.error().message, status_of_refusal(kept.error()));
}

}  // namespace

Result<int> run_keeper_for(const KeptProcess& kept, const OpenPool& open, const Keep& keep, const Report& report) {
  const Fd end(static_cast<int>(::syscall(SYS_pidfd_open, kept.id.pid, 0)));
  if (!is_alive(kept.id)) return usage_error(fmt::format("there is no process {}, or it has ended", kept.id.pid));
  HeldSignals signals;
  REMUDA_ASSIGN(const Worker keeper, fork_worker([&](Fd front) { work(open, keep, std::move(front)); }));
  const auto is_last = [&](const Message& message) {
    report(message);
    return message.kind == Kind::started || message.kind == Kind::ended;
  };
  if (const auto last = relay(keeper, &signals, is_last, end.get()))
    return last->kind == Kind::started ? 0 : last->status;
  report({Kind::ended, 0, process::kOwnFailure,
          is_alive(kept.id) ? "its keeper was killed" : fmt::format("{} has ended", kept.name)});
  return process::kOwnFailure;
}

Result<void> leave_streams() {
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::dup2(nothing.get(), stream) < 0) return failed(fmt::format("cannot open /dev/null: {}", errno_text(errno)));
  return {};
}

}  // namespace remuda::run
