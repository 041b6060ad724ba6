// all_reduce over TCP: each rank sends chunk c of its values to rank c, which adds them up in rank order and sends the
// sum to all. Bytes sent per rank: 2 (N-1)/N times the size.

#include <algorithm>
#include <cstring>
#include <sys/socket.h>

#include "comm/reduce.h"
#include "comm/tcp/exchange.h"
#include "comm/tcp/factory.h"
#include "comm/transport.h"

namespace remuda::comm::tcp {
namespace {

struct alignas(kCacheLine) Line {
  std::byte bytes[kCacheLine];
};

class TcpCommunicator final : public TransportCommunicator {
 public:
  TcpCommunicator(Mesh mesh, double timeout_s)
      : TransportCommunicator(Peers(mesh.rank, std::move(mesh.control)), timeout_s), data_(std::move(mesh.data)) {}

  std::string transport() const override { return "tcp"; }

 protected:
  Result<std::span<std::byte>> do_allocate(const Message& message) override;
  Result<void> do_all_reduce(const Message& m, std::span<float> values) override { return reduce(m, values); }
  Result<void> do_all_reduce(const Message& m, std::span<double> values) override { return reduce(m, values); }
  Result<void> do_broadcast(const Message& message, std::span<std::byte> bytes) override;
  Result<void> do_all_gather(const Message& message, std::span<const std::byte> mine,
                             std::span<std::byte> all) override;
  Result<void> do_barrier(const Message& message) override { return meet(message); }
  uint64_t offset_of(const void* values) const override;
  void hang_up() override;

 private:
  Result<void> meet(const Message& message);
  template <typename T>
  Result<void> reduce(const Message& message, std::span<T> values);
  template <typename T>
  Result<void> scatter(const Message& message, std::span<T> values);
  template <typename T>
  Result<void> gather(const Message& message, std::span<T> values);
  template <typename T>
  T* scratch(size_t bytes);
  /// One transfer per peer, made by `transfer_with(peer)`.
  template <typename Make>
  Result<void> with_peers(const Message& message, Make transfer_with);

  std::vector<Fd> data_;
  std::vector<std::vector<Line>> arenas_;
  std::vector<Line> scratch_;
};

template <typename Make>
Result<void> TcpCommunicator::with_peers(const Message& message, Make transfer_with) {
  std::vector<Transfer> transfers(size());
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) transfers[peer] = transfer_with(peer);
  return exchange(data_, std::move(transfers), peers(), deadline_s(), message);
}

// All messages are read before any data is sent: ranks that disagree all find out.
Result<void> TcpCommunicator::meet(const Message& message) {
  std::vector<Message> theirs(size());
  REMUDA_TRY(with_peers(message, [&](int peer) {
    return Transfer{std::as_bytes(std::span(&message, 1)), std::as_writable_bytes(std::span(&theirs[peer], 1))};
  }));
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) REMUDA_TRY(agree(rank(), message, peer, theirs[peer]));
  return {};
}

Result<std::span<std::byte>> TcpCommunicator::do_allocate(const Message& message) {
  REMUDA_TRY(meet(message));
  auto& arena = arenas_.emplace_back((message.bytes + kCacheLine - 1) / kCacheLine);
  return std::as_writable_bytes(std::span(arena)).first(message.bytes);
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
Result<void> TcpCommunicator::reduce(const Message& message, std::span<T> values) {
  REMUDA_TRY(meet(message));
  REMUDA_TRY(scatter(message, values));
  return gather(message, values);
}

template <typename T>
Result<void> TcpCommunicator::scatter(const Message& message, std::span<T> values) {
  const Chunk own = chunk_of(values.size(), sizeof(T), rank(), size());
  T* received = scratch<T>(own.size() * sizeof(T) * size());
  const auto part_from = [&](int peer) { return received + own.size() * peer; };
  REMUDA_TRY(with_peers(message, [&](int peer) {
    const Chunk theirs = chunk_of(values.size(), sizeof(T), peer, size());
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
Result<void> TcpCommunicator::gather(const Message& message, std::span<T> values) {
  const Chunk own = chunk_of(values.size(), sizeof(T), rank(), size());
  return with_peers(message, [&](int peer) {
    const Chunk theirs = chunk_of(values.size(), sizeof(T), peer, size());
    return Transfer{std::as_bytes(values.subspan(own.begin, own.size())),
                    std::as_writable_bytes(values.subspan(theirs.begin, theirs.size()))};
  });
}

Result<void> TcpCommunicator::do_broadcast(const Message& message, std::span<std::byte> bytes) {
  REMUDA_TRY(meet(message));
  return with_peers(message, [&](int peer) {
    if (rank() == message.root) return Transfer{bytes, {}};
    return peer == message.root ? Transfer{{}, bytes} : Transfer{};
  });
}

Result<void> TcpCommunicator::do_all_gather(const Message& message, std::span<const std::byte> mine,
                                            std::span<std::byte> all) {
  REMUDA_TRY(meet(message));
  std::copy(mine.begin(), mine.end(), all.begin() + rank() * mine.size());
  return with_peers(message, [&](int peer) { return Transfer{mine, all.subspan(peer * mine.size(), mine.size())}; });
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
