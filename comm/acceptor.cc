#include "comm/acceptor.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

// Half of the descriptors that this process may have: the other half is for the ranks and everything else.
size_t most_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::max<size_t>(1, limit.rlim_cur / 2) : 1;
}

}  // namespace

Acceptor::Acceptor(Fd listener, const Identity& self, AcceptorLimits limits)
    : listener_(std::move(listener)), self_(&self), limits_(limits) {
  limits_.pending = std::min(limits_.pending, most_descriptors());
}

Result<void> Acceptor::accept_all() {
  while (!is_full() || make_room()) {
    Fd fd = accept_waiting(listener_.get());
    if (!fd && (errno == EMFILE || errno == ENFILE)) {
      if (pending_.empty())
        return failed(fmt::format("cannot accept the connection of another rank: {}", errno_text(errno)));
      limits_.pending = pending_.size();  // from now on a new connection replaces a silent one
      continue;
    }
    if (!fd) return {};
    const Endpoint from = remote_endpoint(fd.get());
    pending_.push_back({Candidate{std::move(fd), AcceptorHandshake(*self_, from), from.text()}, monotonic_s()});
  }
  return {};
}

std::vector<Acceptor::Pending>::iterator Acceptor::longest_silent() {
  return std::ranges::find(pending_, false, &Pending::challenged);
}

// When the next place becomes free.
double Acceptor::room_s() {
  if (!is_full()) return 0;
  const auto silent = longest_silent();
  return silent == pending_.end() ? kNever_s : silent->since_s + limits_.silence_s;
}

// With all places taken, a waiting connection gets the place of the one that has been silent longest.
bool Acceptor::make_room() {
  if (room_s() > monotonic_s() || !wait_ready(listener_.get(), POLLIN, 0)) return false;
  const auto silent = longest_silent();
  drop(*silent, "it was silent while others waited");
  pending_.erase(silent);
  return true;
}

// Keeps the refusal of a connection that knew the protocol rather than those of others, however many these are.
Acceptor::Progress Acceptor::drop(const Pending& pending, const std::string& why) {
  if (pending.challenged || !refused_a_hello_)
    last_refusal_ = fmt::format("{} was refused: {}", pending.candidate.address, why);
  refused_a_hello_ |= pending.challenged;
  return Progress::dropped;
}

Acceptor::Progress Acceptor::answer(Pending& pending) {
  if (pending.challenged) {
    const auto proven = pending.candidate.handshake.check_proof(pending.bytes);
    return proven ? Progress::proven : drop(pending, proven.error().message);
  }
  const auto challenge = pending.candidate.handshake.challenge(pending.bytes);
  if (!challenge) return drop(pending, challenge.error().message);
  if (send_some(pending.candidate.fd.get(), *challenge) != static_cast<ptrdiff_t>(challenge->size()))
    return drop(pending, "it does not read its answers");
  pending.challenged = true;
  pending.since_s = monotonic_s();  // as long again for the proof
  pending.got = 0;
  return Progress::waiting;
}

Acceptor::Progress Acceptor::read(Pending& pending) {
  const auto rest = std::span(pending.bytes).subspan(pending.got);
  const ptrdiff_t got = recv_some(pending.candidate.fd.get(), rest);
  if (got < 0 && pending.challenged)
    return drop(pending, "it left when challenged, as a rank with another secret does");
  if (got < 0) return drop(pending, "it left in the middle of the handshake");
  pending.got += got;
  if (pending.got == pending.bytes.size()) return answer(pending);
  const auto foreign = check_beginning(std::span(pending.bytes).first(pending.got));
  return foreign ? Progress::waiting : drop(pending, foreign.error().message);
}

Acceptor::Progress Acceptor::advance(Pending& pending) {
  // Whoever calls next() may have been away for longer than a handshake may take: what has come meanwhile counts.
  const bool late = monotonic_s() >= pending.since_s + limits_.handshake_s;
  const Progress progress = pending.readable || late ? read(pending) : Progress::waiting;
  pending.readable = false;
  if (progress != Progress::waiting || monotonic_s() < pending.since_s + limits_.handshake_s) return progress;
  return drop(pending, fmt::format("it did not finish the handshake within {:g} s", limits_.handshake_s));
}

std::optional<Candidate> Acceptor::advance_all() {
  for (auto it = pending_.begin(); it != pending_.end();) {
    const Progress progress = advance(*it);
    std::optional<Candidate> candidate;
    if (progress == Progress::proven) candidate = std::move(it->candidate);
    it = progress == Progress::waiting ? it + 1 : pending_.erase(it);
    if (candidate) return candidate;
  }
  return std::nullopt;
}

Result<void> Acceptor::wait(double deadline_s) {
  std::vector<pollfd> polled;
  for (const Pending& pending : pending_) {
    polled.push_back({pending.candidate.fd.get(), POLLIN, 0});
    deadline_s = std::min(deadline_s, pending.since_s + limits_.handshake_s);
  }
  const double room = room_s();
  if (room <= monotonic_s())
    polled.push_back({listener_.get(), POLLIN, 0});
  else
    deadline_s = std::min(deadline_s, room);
  if (::poll(polled.data(), polled.size(), poll_ms(deadline_s)) < 0 && errno != EINTR)
    return failed(fmt::format("cannot wait for the other ranks: {}", errno_text(errno)));
  for (size_t i = 0; i < pending_.size(); ++i) pending_[i].readable = polled[i].revents != 0;
  return {};
}

Result<std::optional<Candidate>> Acceptor::next(double deadline_s) {
  for (;;) {
    if (auto candidate = advance_all()) return candidate;
    REMUDA_TRY(accept_all());
    if (monotonic_s() >= deadline_s) return std::nullopt;
    REMUDA_TRY(wait(deadline_s));
  }
}

}  // namespace remuda::comm
