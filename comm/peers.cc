#include "comm/peers.h"

#include <fmt/format.h>
#include <span>

#include "comm/wire.h"

namespace remuda::comm {
namespace {
constexpr double kLastWordsS = 1;

struct Goodbye {
  uint64_t sequence = 0;
  int32_t culprit = 0;
  uint32_t reserved = 0;
};
}  // namespace

Error lost_rank(int peer, std::string_view what, const Message& message) {
  return {ErrorKind::lost_peer, fmt::format("rank {} {} during {}", peer, what, describe(message)), peer};
}

Peers::Peers(int rank, std::vector<Fd> control)
    : rank_(rank), control_(std::move(control)), gone_(control_.size(), false) {}

void Peers::listen_to(int peer) {
  Goodbye last;
  const ptrdiff_t got = recv_some(control_[peer].get(), std::as_writable_bytes(std::span(&last, 1)));
  if (got == 0) return;
  gone_[peer] = true;
  if (told_ || got != sizeof last || last.culprit == peer) return;
  const bool me = last.culprit == rank_;
  told_ = {last.sequence,
           {ErrorKind::lost_peer,
            me ? fmt::format("rank {} gave up waiting for this rank, {}, in call #{}", peer, rank_, last.sequence)
               : fmt::format("rank {} went away in call #{}, says rank {}", last.culprit, last.sequence, peer),
            me ? peer : last.culprit}};
}

Result<void> Peers::listen(uint64_t sequence) {
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank_ && !gone_[peer]) listen_to(peer);
  if (told_ && told_->sequence <= sequence) return tl::unexpected(told_->error);
  return {};
}

Error Peers::cause(int peer, const Message& message) {
  if (!gone_[peer] && wait_ready(control_[peer].get(), POLLIN, deadline_after(kLastWordsS))) listen_to(peer);
  return told_ ? told_->error : lost_rank(peer, "went away", message);
}

void Peers::goodbye(int culprit, uint64_t sequence) {
  const Goodbye last{sequence, culprit};
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank_ && !gone_[peer]) send_some(control_[peer].get(), std::as_bytes(std::span(&last, 1)));
}

void Peers::watch(std::vector<pollfd>& polled) const {
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank_ && !gone_[peer]) polled.push_back({control_[peer].get(), POLLIN, 0});
}

}  // namespace remuda::comm
