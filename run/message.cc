#include "run/message.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/spawn.h"

namespace remuda::run {
namespace {

constexpr size_t kLongest = 64 << 10;

bool send_bytes(int fd, const void* bytes, size_t size) {
  return ::send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size);
}

/// The size of the datagram received; 0: the other side is gone; -1: none yet.
ssize_t receive_bytes(int fd, void* bytes, size_t size) {
  ssize_t got = ::recv(fd, bytes, size, MSG_DONTWAIT);
  // The other side has gone without reading all that it was sent. The kernel says so once, ahead of what it had sent.
  if (got < 0 && errno == ECONNRESET) got = ::recv(fd, bytes, size, MSG_DONTWAIT);
  if (got >= 0) return got;
  return errno == EAGAIN || errno == EINTR ? -1 : 0;
}

std::optional<Message> parse(std::string_view text) {
  const auto json = parse_json(text, "message");
  if (!json) return std::nullopt;
  const auto kind = from_word<Message::Kind>(json->at("kind").get<std::string>());
  if (!kind) return std::nullopt;
  return Message{*kind, json->at("job").get<int64_t>(), json->at("status").get<int>(),
                 json->at("text").get<std::string>()};
}

}  // namespace

int status_of_refusal(const Error& error) {
  const bool is_known =
      error.kind == ErrorKind::usage || error.kind == ErrorKind::never || error.kind == ErrorKind::unavailable;
  return is_known ? exit_status(error.kind) : process::kOwnFailure;
}

Result<Channel> make_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return failed(fmt::format("cannot make a channel: {}", errno_text(errno)));
  return Channel{Fd(ends[0]), Fd(ends[1])};
}

void close_all_but(int kept) {
  constexpr int kFirst = STDERR_FILENO + 1;
  if (kept > kFirst) ::syscall(SYS_close_range, kFirst, kept - 1, 0);
  ::syscall(SYS_close_range, std::max(kept + 1, kFirst), ~0U, 0);
}

bool send(int fd, const Message& message) {
  const std::string text = to_line(Json{{"kind", to_string(message.kind)},
                                        {"job", message.job},
                                        {"status", message.status},
                                        {"text", message.text.substr(0, kLongest / 8)}});
  return send_bytes(fd, text.data(), text.size());
}

bool send(int fd, const ReceivedSignal& signal) { return send_bytes(fd, &signal, sizeof signal); }

Received<Message> receive_message(int fd) {
  std::array<char, kLongest> bytes;
  const ssize_t got = receive_bytes(fd, bytes.data(), bytes.size());
  if (got <= 0) return {std::nullopt, got == 0};
  return {parse({bytes.data(), static_cast<size_t>(got)})};
}

Received<ReceivedSignal> receive_signal(int fd) {
  ReceivedSignal signal;
  const ssize_t got = receive_bytes(fd, &signal, sizeof signal);
  if (got == sizeof signal) return {signal};
  return {std::nullopt, got == 0};
}

}  // namespace remuda::run
