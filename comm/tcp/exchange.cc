#include "comm/tcp/exchange.h"

#include <algorithm>
#include <poll.h>

#include "base/clock.h"
#include "comm/wire.h"

namespace remuda::comm::tcp {
namespace {

constexpr size_t kTurnBytes = 256 << 10;

bool done(const Transfer& transfer) { return transfer.out.empty() && transfer.in.empty(); }

// One turn each way, so that data is taken out of the socket's buffer while it is still in the cache. Returns the bytes
// moved, or -1 when the peer's connection has ended before all was received.
ptrdiff_t take_turn(int fd, Transfer& transfer) {
  ptrdiff_t got = 0, sent = 0;
  if (!transfer.in.empty()) got = recv_some(fd, transfer.in.first(std::min(kTurnBytes, transfer.in.size())));
  if (got < 0) return -1;
  transfer.in = transfer.in.subspan(got);
  if (!transfer.out.empty()) sent = send_some(fd, transfer.out.first(std::min(kTurnBytes, transfer.out.size())));
  if (sent < 0) return -1;
  transfer.out = transfer.out.subspan(sent);
  return got + sent;
}

// Moves as much as goes without waiting; false when the peer's connection has ended.
bool advance(int fd, Transfer& transfer) {
  while (!done(transfer)) {
    const ptrdiff_t moved = take_turn(fd, transfer);
    if (moved <= 0) return moved == 0;
  }
  return true;
}

short events_for(const Transfer& transfer) {
  return static_cast<short>((transfer.out.empty() ? 0 : POLLOUT) | (transfer.in.empty() ? 0 : POLLIN));
}

}  // namespace

Result<void> exchange(std::span<const Fd> data, std::vector<Transfer> transfers, Peers& peers, double deadline_s,
                      const Message& message) {
  for (;;) {
    std::vector<pollfd> polled;
    int waiting_for = -1;
    for (int peer = 0; peer < peers.size(); ++peer) {
      Transfer& transfer = transfers[peer];
      if (done(transfer)) continue;
      if (!advance(data[peer].get(), transfer)) return tl::unexpected(peers.cause(peer, message));
      if (done(transfer)) continue;
      polled.push_back({data[peer].get(), events_for(transfer), 0});
      if (waiting_for < 0) waiting_for = peer;
    }
    if (waiting_for < 0) return {};
    if (monotonic_s() >= deadline_s) return tl::unexpected(lost_rank(waiting_for, "did not answer in time", message));
    peers.watch(polled);
    ::poll(polled.data(), polled.size(), poll_ms(deadline_s));
    REMUDA_TRY(peers.listen(message.sequence));
  }
}

}  // namespace remuda::comm::tcp
