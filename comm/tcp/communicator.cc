// all_reduce over TCP is its two halves in one message: each rank sends part r of its values to rank r, which adds them
// up in rank order as they come and sends the sum to all. Bytes sent per rank: 2 (N-1)/N times the size. A broadcast of
// more than a little goes the same way: each rank gets a part of it from the root and passes it on.

#include <algorithm>
#include <functional>

#include "comm/exchange.h"
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
      : TransportCommunicator(mesh, std::move(origin)), data_(std::move(mesh.data)) {}

  std::string transport() const override {
    return std::ranges::any_of(data_, &Link::encrypted) ? "tcp, encrypted" : "tcp";
  }
  uint64_t sent_bytes() const override { return sent_bytes_; }
  std::vector<std::vector<int>> hosts() const override;

 protected:
  Result<std::span<std::byte>> do_allocate(const Call& call) override;
  Result<void> do_all_reduce(const Call& call, std::span<std::byte> bytes) override;
  Result<void> do_reduce_scatter(const Call& call, std::span<std::byte> bytes, const Parts& parts,
                                 std::byte* sum) override;
  Result<void> do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) override;
  Result<void> do_broadcast(const Call& call, std::span<std::byte> bytes, int root) override;
  Result<void> do_all_gather(const Call& call, std::span<const std::byte> mine, std::span<std::byte> all) override;
  Result<void> do_all_to_all(const Call& call, std::span<const std::byte> mine, const Parts& parts,
                             std::span<std::byte> theirs) override;
  Result<void> do_barrier(const Call& call) override { return meet(call); }
  uint64_t offset_of(const void* values) const override;
  void hang_up() override;

 private:
  Exchange begin(const Call& call) { return Exchange(call, ranks(), data_, peers()); }
  Result<void> run(Exchange& exchange);
  /// Nothing but the descriptions of the call.
  Result<void> meet(const Call& call);
  template <typename Each>
  void for_peers(Each each) const;
  void send_values(Exchange& exchange, const Call& call, std::span<std::byte> bytes, const Parts& parts,
                   std::byte* sum = nullptr);
  void send_finished(Exchange& exchange, std::span<std::byte> bytes, const Parts& parts);

  std::vector<Link> data_;
  std::vector<std::vector<Line>> arenas_;
  PartSum sum_;
  uint64_t sent_bytes_ = 0;
};

std::vector<std::vector<int>> TcpCommunicator::hosts() const {
  std::vector<std::vector<int>> alone;
  for (int rank = 0; rank < size(); ++rank) alone.push_back({rank});
  return alone;
}

Result<void> TcpCommunicator::run(Exchange& exchange) {
  auto result = exchange.run(deadline_s());
  sent_bytes_ += exchange.sent_bytes();
  return result;
}

Result<void> TcpCommunicator::meet(const Call& call) {
  Exchange exchange = begin(call);
  return run(exchange);
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
void TcpCommunicator::send_values(Exchange& exchange, const Call& call, std::span<std::byte> bytes, const Parts& parts,
                                  std::byte* sum) {
  for_peers([&](int peer) { exchange.flow(peer).values.add(part_of(bytes, parts.of(peer))); });
  sum_.begin(rank(), size(), call.type, part_of(bytes, parts.of(rank())), sum);
  exchange.add_up(sum_);
}

// The own part to all, and theirs in place.
void TcpCommunicator::send_finished(Exchange& exchange, std::span<std::byte> bytes, const Parts& parts) {
  for_peers([&](int peer) {
    exchange.flow(peer).finished.add(part_of(bytes, parts.of(rank())));
    exchange.flow(peer).in.add(part_of(bytes, parts.of(peer)));
  });
}

Result<void> TcpCommunicator::do_all_reduce(const Call& call, std::span<std::byte> bytes) {
  const Parts parts = even_parts(size(), bytes.size(), 1);
  Exchange exchange = begin(call);
  send_values(exchange, call, bytes, parts);
  send_finished(exchange, bytes, parts);
  return run(exchange);
}

Result<void> TcpCommunicator::do_reduce_scatter(const Call& call, std::span<std::byte> bytes, const Parts& parts,
                                                std::byte* sum) {
  Exchange exchange = begin(call);
  send_values(exchange, call, bytes, parts, sum);
  return run(exchange);
}

Result<void> TcpCommunicator::do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) {
  Exchange exchange = begin(call);
  send_finished(exchange, bytes, parts);
  return run(exchange);
}

Result<void> TcpCommunicator::do_broadcast(const Call& call, std::span<std::byte> bytes, int root) {
  Exchange exchange = begin(call);
  exchange.broadcast(bytes, root);
  return run(exchange);
}

Result<void> TcpCommunicator::do_all_gather(const Call& call, std::span<const std::byte> mine,
                                            std::span<std::byte> all) {
  Exchange exchange = begin(call);
  std::copy(mine.begin(), mine.end(), all.begin() + rank() * mine.size());
  for_peers([&](int peer) {
    exchange.flow(peer).finished.add(mine);
    exchange.flow(peer).in.add(all.subspan(peer * mine.size(), mine.size()));
  });
  return run(exchange);
}

Result<void> TcpCommunicator::do_all_to_all(const Call& call, std::span<const std::byte> mine, const Parts& parts,
                                            std::span<std::byte> theirs) {
  Exchange exchange = begin(call);
  const size_t own = parts.of(rank()).size();
  std::ranges::copy(part_of(mine, parts.of(rank())), theirs.begin() + ptrdiff_t(size_t(rank()) * own));
  for_peers([&](int peer) {
    exchange.flow(peer).finished.add(part_of(mine, parts.of(peer)));
    exchange.flow(peer).in.add(theirs.subspan(size_t(peer) * own, own));
  });
  return run(exchange);
}

void TcpCommunicator::hang_up() {
  for (const Link& link : data_)
    if (link) link.hang_up();
}

}  // namespace

std::unique_ptr<Communicator> make(Mesh mesh, Origin origin) {
  return std::make_unique<TcpCommunicator>(std::move(mesh), std::move(origin));
}

}  // namespace remuda::comm::tcp
