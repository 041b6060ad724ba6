#include "run/detach.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
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

[[noreturn]] void go_on(int caller, const std::function<Result<int>(const Tell&)>& front) {
  const auto tell = [&](const Message& message) { send(caller, message); };
  if (!leave_terminal()) {
    tell({Message::Kind::ended, 0, process::kOwnFailure,
          fmt::format("cannot go to the background: {}", errno_text(errno))});
    ::_exit(process::kOwnFailure);
  }
  const Result<int> status = front(tell);
  if (!status) tell({Message::Kind::ended, 0, process::kOwnFailure, status.error().message});
  ::_exit(status.value_or(process::kOwnFailure));
}

}  // namespace

Result<Message> detach(const std::function<Result<int>(const Tell&)>& front) {
  REMUDA_ASSIGN(Channel channel, make_channel());
  const pid_t child = ::fork();
  if (child < 0) return failed(fmt::format("cannot start a process: {}", errno_text(errno)));
  if (child == 0) {
    channel.front.reset();
    go_on(channel.keeper.get(), front);
  }
  channel.keeper.reset();
  for (;;) {
    pollfd polled{channel.front.get(), POLLIN, 0};
    ::poll(&polled, 1, -1);
    const Received<Message> received = receive_message(channel.front.get());
    if (received.gone) return failed("the process that should have gone to the background was killed");
    if (received.value && received.value->kind != Message::Kind::note) return *received.value;
  }
}

}  // namespace remuda::run
