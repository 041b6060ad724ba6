#include "run/detach.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "process/spawn.h"

namespace remuda::run {
namespace {

bool leave_terminal() {
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (::setsid() < 0 || !nothing) return false;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::dup2(nothing.get(), stream) < 0) return false;
  return true;
}

[[noreturn]] void go_on(const Fd& channel, const std::function<Result<int>(const Report&)>& front) {
  const int caller = channel.get();
  const Report report = [&](const Message& message) { send(caller, message); };
  close_all_but(caller);
  if (!leave_terminal()) {
    report({Message::Kind::ended, 0, process::kOwnFailure,
            fmt::format("cannot go to the background: {}", errno_text(errno))});
    ::_exit(process::kOwnFailure);
  }
  const Result<int> status = front(report);
  if (!status) report({Message::Kind::ended, 0, process::kOwnFailure, status.error().message});
  ::_exit(status.value_or(process::kOwnFailure));
}

}  // namespace

Result<Message> detach(const std::function<Result<int>(const Report&)>& front) {
  REMUDA_ASSIGN(const Worker background, fork_worker([&](const Fd& caller) { go_on(caller, front); }));
  auto first = relay(background, nullptr, [](const Message& message) { return message.kind != Message::Kind::note; });
  if (first) return std::move(*first);
  return failed("the process that should have gone to the background was killed");
}

}  // namespace remuda::run
