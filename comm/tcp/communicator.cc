// all_reduce over TCP is reduce_scatter and gather_parts: each rank sends part r of its values to rank r, which adds
// them up in rank order and sends the sum to all. Bytes sent per rank: 2 (N-1)/N times the size.

#include <algorithm>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "comm/reduce.h"
#include "comm/tcp/factory.h"
#include "comm/transport.h"
#include "comm/wire.h"

namespace remuda::comm::tcp {
namespace {

// The data to send to and receive from one peer; either may be empty.
struct Transfer {
  std::span<const std::byte> out;
  std::span<std::byte> in;
};

constexpr size_t kTurnBytes = 256 << 10;

bool done(const Transfer& transfer) { return transfer.out.empty() && transfer.in.empty(); }

// One step in each direction, so that data is read from the socket's buffer while it is still in the cache. Returns the
// bytes moved, or -1 when the peer's connection has ended before all was received.
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

// Moves as much as possible without waiting; false when the peer's connection has ended.
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

// Sends to and receives from all peers at once, so that no two ranks can wait for each other's buffers: one transfer
// per rank (the own one is empty), all of them part of `call`. Errors: a peer that is gone, or did not answer before
// the deadline.
Result<void> exchange(std::span<const Fd> data, std::vector<Transfer> transfers, Peers& peers, double deadline_s,
                      const Call& call) {
  for (;;) {
    std::vector<pollfd> polled;
    int waiting_for = -1;
    for (int peer = 0; peer < peers.size(); ++peer) {
      Transfer& transfer = transfers[peer];
      if (done(transfer)) continue;
      if (!advance(data[peer].get(), transfer)) return tl::unexpected(peers.cause(peer, call));
      if (done(transfer)) continue;
      polled.push_back({data[peer].get(), events_for(transfer), 0});
      if (waiting_for < 0) waiting_for = peer;
    }
    if (waiting_for < 0) return {};
    if (monotonic_s() >= deadline_s) return tl::unexpected(lost_rank(waiting_for, "did not answer in time", call));
    peers.watch(polled);
    ::poll(polled.data(), polled.size(), poll_ms(deadline_s));
    REMUDA_TRY(peers.check(call.sequence));
  }
}

struct alignas(kCacheLine) Line {
  std::byte bytes[kCacheLine];
};

class TcpCommunicator final : public TransportCommunicator {
 public:
  TcpCommunicator(Mesh mesh, double timeout_s)
      : TransportCommunicator(Peers(mesh.rank, std::move(mesh.control)), timeout_s), data_(std::move(mesh.data)) {}

  std::string transport() const override { return "tcp"; }

 protected:
  Result<std::span<std::byte>> do_allocate(const Call& call) override;
  Result<void> do_all_reduce(const Call& call, std::span<float> v) override { return reduce(call, v); }
  Result<void> do_all_reduce(const Call& call, std::span<double> v) override { return reduce(call, v); }
  Result<void> do_reduce_scatter(const Call& call, std::span<float> v, const Parts& parts) override {
    REMUDA_TRY(agree_on(call));
    return scatter(call, v, parts);
  }
  Result<void> do_reduce_scatter(const Call& call, std::span<double> v, const Parts& parts) override {
    REMUDA_TRY(agree_on(call));
    return scatter(call, v, parts);
  }
  Result<void> do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) override {
    REMUDA_TRY(agree_on(call));
    return gather(call, bytes, parts);
  }
  Result<void> do_broadcast(const Call& call, std::span<std::byte> bytes) override;
  Result<void> do_all_gather(const Call& call, std::span<const std::byte> mine, std::span<std::byte> all) override;
  Result<void> do_barrier(const Call& call) override { return agree_on(call); }
  uint64_t offset_of(const void* values) const override;
  void hang_up() override;

 private:
  /// Waits for all ranks, and checks that all make the same call.
  Result<void> agree_on(const Call& call);
  template <typename T>
  Result<void> reduce(const Call& call, std::span<T> values);
  template <typename T>
  Result<void> scatter(const Call& call, std::span<T> values, const Parts& parts);
  template <typename T>
  Result<void> gather(const Call& call, std::span<T> values, const Parts& parts);
  template <typename T>
  T* scratch(size_t bytes);
  /// One transfer per peer, made by `transfer_with(peer)`.
  template <typename Make>
  Result<void> with_peers(const Call& call, Make transfer_with);

  std::vector<Fd> data_;
  std::vector<std::vector<Line>> arenas_;
  std::vector<Line> scratch_;
};

template <typename Make>
Result<void> TcpCommunicator::with_peers(const Call& call, Make transfer_with) {
  std::vector<Transfer> transfers(size());
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) transfers[peer] = transfer_with(peer);
  return exchange(data_, std::move(transfers), peers(), deadline_s(), call);
}

// All calls are compared before any data is sent: ranks that disagree all find out.
Result<void> TcpCommunicator::agree_on(const Call& call) {
  std::vector<Call> theirs(size());
  REMUDA_TRY(with_peers(call, [&](int peer) {
    return Transfer{std::as_bytes(std::span(&call, 1)), std::as_writable_bytes(std::span(&theirs[peer], 1))};
  }));
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) REMUDA_TRY(check_same(rank(), call, peer, theirs[peer]));
  return {};
}

Result<std::span<std::byte>> TcpCommunicator::do_allocate(const Call& call) {
  REMUDA_TRY(agree_on(call));
  auto& arena = arenas_.emplace_back((call.bytes + kCacheLine - 1) / kCacheLine);
  return std::as_writable_bytes(std::span(arena)).first(call.bytes);
}

uint64_t TcpCommunicator::offset_of(const void* values) const {
  uint64_t offset = 0;
  for (const auto& arena : arenas_) {
    const auto bytes = std::as_bytes(std::span(arena));
    const auto* at = static_cast<const std::byte*>(values);
    if (std::less_equal<>()(bytes.data(), at) && std::less<>()(at, bytes.data() + bytes.size()))
      return offset + (at - bytes.data());
    offset += bytes.size();
  }
  return 0;
}

template <typename T>
T* TcpCommunicator::scratch(size_t bytes) {
  const size_t lines = (bytes + kCacheLine - 1) / kCacheLine;
  if (scratch_.size() < lines) scratch_.resize(lines);
  return reinterpret_cast<T*>(scratch_.data());
}

template <typename T>
Result<void> TcpCommunicator::reduce(const Call& call, std::span<T> values) {
  REMUDA_TRY(agree_on(call));
  const Parts parts = even_parts(size(), values.size(), sizeof(T));
  REMUDA_TRY(scatter(call, values, parts));
  return gather(call, values, parts);
}

template <typename T>
Result<void> TcpCommunicator::scatter(const Call& call, std::span<T> values, const Parts& parts) {
  const Chunk own = parts.of(rank());
  T* received = scratch<T>(own.size() * sizeof(T) * size());
  const auto part_from = [&](int peer) { return received + own.size() * peer; };
  REMUDA_TRY(with_peers(call, [&](int peer) {
    const Chunk theirs = parts.of(peer);
    return Transfer{std::as_bytes(values.subspan(theirs.begin, theirs.size())),
                    std::as_writable_bytes(std::span(part_from(peer), own.size()))};
  }));
  T* mine = values.data() + own.begin;
  std::vector<const T*> in(size());
  for (int peer = 0; peer < size(); ++peer) in[peer] = peer == rank() ? mine : part_from(peer);
  sum_in_rank_order<T>(in, std::span(&mine, 1), own.size());
  return {};
}

template <typename T>
Result<void> TcpCommunicator::gather(const Call& call, std::span<T> values, const Parts& parts) {
  const Chunk own = parts.of(rank());
  return with_peers(call, [&](int peer) {
    const Chunk theirs = parts.of(peer);
    return Transfer{std::as_bytes(values.subspan(own.begin, own.size())),
                    std::as_writable_bytes(values.subspan(theirs.begin, theirs.size()))};
  });
}

Result<void> TcpCommunicator::do_broadcast(const Call& call, std::span<std::byte> bytes) {
  REMUDA_TRY(agree_on(call));
  return with_peers(call, [&](int peer) {
    if (rank() == call.root) return Transfer{bytes, {}};
    return peer == call.root ? Transfer{{}, bytes} : Transfer{};
  });
}

Result<void> TcpCommunicator::do_all_gather(const Call& call, std::span<const std::byte> mine,
                                            std::span<std::byte> all) {
  REMUDA_TRY(agree_on(call));
  std::copy(mine.begin(), mine.end(), all.begin() + rank() * mine.size());
  return with_peers(call, [&](int peer) { return Transfer{mine, all.subspan(peer * mine.size(), mine.size())}; });
}

void TcpCommunicator::hang_up() {
  for (const Fd& fd : data_)
    if (fd) ::shutdown(fd.get(), SHUT_WR);
}

}  // namespace

std::unique_ptr<Communicator> make(Mesh mesh, double timeout_s) {
  return std::make_unique<TcpCommunicator>(std::move(mesh), timeout_s);
}

}  // namespace remuda::comm::tcp
