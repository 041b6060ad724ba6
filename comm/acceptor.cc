#include "comm/acceptor.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <poll.h>

#include "base/clock.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {
constexpr double kHandshakeS = 3;    // a rank needs milliseconds
constexpr size_t kMaxPending = 256;  // the rest waits in the listener's queue
}  // namespace

Acceptor::Acceptor(Fd listener, const Identity& self) : listener_(std::move(listener)), self_(&self) {}

void Acceptor::welcome_waiting() {
  while (pending_.size() < kMaxPending) {
    Fd fd = accept_waiting(listener_.get());
    if (!fd) return;
    std::string address = remote_endpoint(fd.get()).text();
    pending_.push_back({Visitor{std::move(fd), Reception(*self_), std::move(address)}});
    pending_.back().deadline_s = deadline_after(kHandshakeS);
  }
}

Acceptor::Progress Acceptor::drop(const Pending& pending, const std::string& why) {
  last_refusal_ = fmt::format("{} was refused: {}", pending.visitor.address, why);
  return Progress::dropped;
}

Acceptor::Progress Acceptor::hear(Pending& pending) {
  if (pending.challenged) {
    const auto proven = pending.visitor.reception.check(pending.bytes);
    return proven ? Progress::proven : drop(pending, proven.error().message);
  }
  const auto challenge = pending.visitor.reception.answer(pending.bytes);
  if (!challenge) return drop(pending, challenge.error().message);
  if (send_some(pending.visitor.fd.get(), *challenge) != static_cast<ptrdiff_t>(challenge->size()))
    return drop(pending, "it does not read its answers");
  pending.challenged = true;
  pending.got = 0;
  return Progress::waiting;
}

Acceptor::Progress Acceptor::advance(Pending& pending) {
  const auto rest = std::span(pending.bytes).subspan(pending.got);
  const ptrdiff_t got = recv_some(pending.visitor.fd.get(), rest);
  if (got < 0 && pending.challenged)
    return drop(pending, "it left when challenged, as a rank with another secret does");
  if (got < 0) return drop(pending, "it left in the middle of the handshake");
  pending.got += got;
  if (pending.got == pending.bytes.size()) return hear(pending);
  if (monotonic_s() < pending.deadline_s) return Progress::waiting;
  return drop(pending, fmt::format("it did not finish the handshake within {} s", kHandshakeS));
}

Result<std::optional<Visitor>> Acceptor::next(double deadline_s) {
  for (;;) {
    welcome_waiting();
    for (auto it = pending_.begin(); it != pending_.end();) {
      const Progress progress = advance(*it);
      std::optional<Visitor> visitor;
      if (progress == Progress::proven) visitor = std::move(it->visitor);
      it = progress == Progress::waiting ? it + 1 : pending_.erase(it);
      if (visitor) return visitor;
    }
    if (monotonic_s() >= deadline_s) return std::nullopt;
    double wake_s = deadline_s;
    std::vector<pollfd> waited;
    if (pending_.size() < kMaxPending) waited.push_back({listener_.get(), POLLIN, 0});
    for (const auto& pending : pending_) {
      waited.push_back({pending.visitor.fd.get(), POLLIN, 0});
      wake_s = std::min(wake_s, pending.deadline_s);
    }
    if (::poll(waited.data(), waited.size(), poll_ms(wake_s)) < 0 && errno != EINTR)
      return failed(fmt::format("cannot wait for the other ranks: {}", errno_text(errno)));
  }
}

}  // namespace remuda::comm
