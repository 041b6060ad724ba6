// all_reduce over TCP is its two halves in one message: each rank sends part r of its values to rank r, which adds them
// up in rank order as they come and sends the sum to all. Bytes sent per rank: 2 (N-1)/N times the size. A broadcast of
// more than a little goes the same way: each rank gets a part of it from the root and passes it on.

#include <algorithm>
#include <functional>

#include "comm/streams.h"
#include "comm/tcp/factory.h"
#include "comm/transport.h"

namespace remuda::comm::tcp {
namespace {

struct alignas(kCacheLine) Line {
  std::byte bytes[kCacheLine];
};

class TcpCommunicator final : public TransportCommunicator {
 public:
  TcpCommunicator(Mesh mesh, Origin origin)
      : TransportCommunicator(mesh, origin), streams_(std::move(mesh.data), origin->stripe_bytes, peers()) {}

  std::string transport() const override { return streams_.encrypted() ? "tcp, encrypted" : "tcp"; }
  uint64_t sent_bytes() const override { return streams_.sent_bytes(); }
  std::vector<std::vector<int>> hosts() const override;

 protected:
  Result<std::span<std::byte>> do_allocate(const Call& call) override;
  Result<void> do_all_reduce(const Call& call, std::span<std::byte> bytes) override;
  Result<void> do_reduce_scatter(const Call& call, std::span<std::byte> bytes, const Parts& parts, std::byte* sum,
                                 const std::vector<bool>& silent) override;
  Result<void> do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) override;
  Result<void> do_broadcast(const Call& call, std::span<std::byte> bytes, int root) override;
  Result<void> do_all_gather(const Call& call, std::span<const std::byte> mine, std::span<std::byte> all) override;
  Result<void> do_all_to_all(const Call& call, std::span<const std::byte> mine, const Parts& parts,
                             std::span<std::byte> theirs) override;
  Result<void> do_barrier(const Call& call) override { return meet(call); }
  uint64_t offset_of(const void* values) const override;
  void hang_up() override { streams_.hang_up(); }

 private:
  Result<void> run(const Call& call, size_t bytes, const std::function<void(Stripe&)>& fill) {
    return streams_.run(call, ranks(), bytes, deadline_s(), fill);
  }
  /// Nothing but the descriptions of the call.
  Result<void> meet(const Call& call) {
    return run(call, 0, [](Stripe&) {});
  }
  template <typename Each>
  void for_peers(Each each) const;
  void send_values(Stripe& stripe, const Call& call, std::span<std::byte> bytes, const Parts& parts,
                   std::byte* sum = nullptr, const std::vector<bool>& silent = {}) const;
  void send_finished(Stripe& stripe, std::span<std::byte> bytes, const Parts& parts) const;

  Streams streams_;
  std::vector<std::vector<Line>> arenas_;
};

std::vector<std::vector<int>> TcpCommunicator::hosts() const {
  std::vector<std::vector<int>> alone;
  for (int rank = 0; rank < size(); ++rank) alone.push_back({rank});
  return alone;
}

template <typename Each>
void TcpCommunicator::for_peers(Each each) const {
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) each(peer);
}

Result<std::span<std::byte>> TcpCommunicator::do_allocate(const Call& call) {
  REMUDA_TRY(meet(call));
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

// To each owner this rank's values of its part; those of the own part are added up.
void TcpCommunicator::send_values(Stripe& stripe, const Call& call, std::span<std::byte> bytes, const Parts& parts,
                                  std::byte* sum, const std::vector<bool>& silent) const {
  if (silent.empty() || !silent[static_cast<size_t>(rank())])
    for_peers([&](int peer) { stripe.exchange.flow(peer).values.add(stripe.of(part_of(bytes, parts.of(peer)))); });
  const auto own = part_of(bytes, parts.of(rank()));
  if (sum) sum += stripe.chunk_of(own.size()).begin / size_of(call.type) * size_of(sum_of(call.type));
  stripe.sum.begin(rank(), size(), call.type, stripe.of(own), sum, silent);
  stripe.exchange.add_up(stripe.sum);
}

// The own part to all, and theirs in place.
void TcpCommunicator::send_finished(Stripe& stripe, std::span<std::byte> bytes, const Parts& parts) const {
  for_peers([&](int peer) {
    stripe.exchange.flow(peer).finished.add(stripe.of(part_of(bytes, parts.of(rank()))));
    stripe.exchange.flow(peer).in.add(stripe.of(part_of(bytes, parts.of(peer))));
  });
}

Result<void> TcpCommunicator::do_all_reduce(const Call& call, std::span<std::byte> bytes) {
  const Parts parts = even_parts(size(), bytes.size(), 1);
  return run(call, bytes.size(), [&](Stripe& stripe) {
    send_values(stripe, call, bytes, parts);
    send_finished(stripe, bytes, parts);
  });
}

Result<void> TcpCommunicator::do_reduce_scatter(const Call& call, std::span<std::byte> bytes, const Parts& parts,
                                                std::byte* sum, const std::vector<bool>& silent) {
  return run(call, bytes.size(), [&](Stripe& stripe) { send_values(stripe, call, bytes, parts, sum, silent); });
}

Result<void> TcpCommunicator::do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) {
  return run(call, bytes.size(), [&](Stripe& stripe) { send_finished(stripe, bytes, parts); });
}

Result<void> TcpCommunicator::do_broadcast(const Call& call, std::span<std::byte> bytes, int root) {
  return run(call, bytes.size(), [&](Stripe& stripe) { stripe.exchange.broadcast(stripe.of(bytes), root); });
}

Result<void> TcpCommunicator::do_all_gather(const Call& call, std::span<const std::byte> mine,
                                            std::span<std::byte> all) {
  std::copy(mine.begin(), mine.end(), all.begin() + rank() * mine.size());
  return run(call, all.size(), [&](Stripe& stripe) {
    for_peers([&](int peer) {
      stripe.exchange.flow(peer).finished.add(stripe.of(mine));
      stripe.exchange.flow(peer).in.add(stripe.of(all.subspan(peer * mine.size(), mine.size())));
    });
  });
}

Result<void> TcpCommunicator::do_all_to_all(const Call& call, std::span<const std::byte> mine, const Parts& parts,
                                            std::span<std::byte> theirs) {
  const size_t own = parts.of(rank()).size();
  std::ranges::copy(part_of(mine, parts.of(rank())), theirs.begin() + ptrdiff_t(size_t(rank()) * own));
  return run(call, mine.size(), [&](Stripe& stripe) {
    for_peers([&](int peer) {
      stripe.exchange.flow(peer).finished.add(stripe.of(part_of(mine, parts.of(peer))));
      stripe.exchange.flow(peer).in.add(stripe.of(theirs.subspan(size_t(peer) * own, own)));
    });
  });
}

}  // namespace

std::unique_ptr<Communicator> make(Mesh mesh, Origin origin) {
  return std::make_unique<TcpCommunicator>(std::move(mesh), std::move(origin));
}

}  // namespace remuda::comm::tcp
