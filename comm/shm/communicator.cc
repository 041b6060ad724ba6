// all_reduce in place, without a copy: once all ranks have announced the call, rank r adds up part r of all ranks'
// buffers and writes the sum into all of them. Memory traffic: N buffers read once and written once. Its halves do the
// same in two calls: reduce_scatter writes the sum only into the own buffer, gather_parts copies the others' parts.

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/check.h"
#include "comm/reduce.h"
#include "comm/shm/factory.h"
#include "comm/shm/memory.h"
#include "comm/shm/slots.h"
#include "comm/transport.h"

namespace remuda::comm::shm {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPieceBytes = 128 << 10;  // half of a rank's bounce buffer

constexpr size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// The file: one page for the token, the slots, two bounce pieces per rank, then the arenas as they are allocated.
struct Layout {
  explicit Layout(int size)
      : bounce(kPage + whole_pages(size * sizeof(Slot))), arenas(bounce + size * 2 * kPieceBytes) {}
  size_t slots = kPage;
  size_t bounce;
  size_t arenas;
};

// The result of one allocate(): `stride` bytes for each rank, one after the other.
struct Arena {
  std::byte* base;
  size_t stride;
  size_t offset;
};

class ShmCommunicator final : public TransportCommunicator {
 public:
  ShmCommunicator(Peers peers, double timeout_s, std::shared_ptr<Memory> memory, std::byte* head)
      : TransportCommunicator(std::move(peers), timeout_s),
        memory_(std::move(memory)),
        layout_(size()),
        head_(head),
        slots_(reinterpret_cast<Slot*>(head + layout_.slots), rank(), size()),
        end_(layout_.arenas) {}

  static Result<std::unique_ptr<Communicator>> make(Mesh& mesh, double connect_timeout_s, double timeout_s);

  std::string transport() const override { return "shared memory"; }
  uint64_t sent_bytes() const override { return 0; }

 protected:
  Result<std::span<std::byte>> do_allocate(const Call& call) override;
  Result<void> do_all_reduce(const Call& call, std::span<float> v) override { return reduce(call, v); }
  Result<void> do_all_reduce(const Call& call, std::span<double> v) override { return reduce(call, v); }
  Result<void> do_reduce_scatter(const Call& call, std::span<float> v, const Parts& parts) override {
    return scatter(call, v, parts);
  }
  Result<void> do_reduce_scatter(const Call& call, std::span<double> v, const Parts& parts) override {
    return scatter(call, v, parts);
  }
  Result<void> do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) override;
  Result<void> do_broadcast(const Call& call, std::span<std::byte> bytes) override;
  Result<void> do_all_gather(const Call& call, std::span<const std::byte> mine, std::span<std::byte> all) override;
  Result<void> do_barrier(const Call& call) override { return agree_on(call); }
  uint64_t offset_of(const void* values) const override;

 private:
  /// Waits for all ranks, and checks that all make the same call.
  Result<void> agree_on(const Call& call);
  Result<void> step(const Call& call);
  const Arena* arena_of(const void* values) const;
  /// Where each rank has what this one has at `mine`, in allocate()d memory.
  template <typename T>
  std::vector<T*> on_all_ranks(T* mine) const;
  template <typename T>
  Result<void> reduce(const Call& call, std::span<T> values);
  template <typename T>
  Result<void> scatter(const Call& call, std::span<T> values, const Parts& parts);
  /// Passes `bytes` on in pieces: `fill(bounce, piece)` before the others may read, `drain(piece)` after.
  template <typename Fill, typename Drain>
  Result<void> in_pieces(const Call& call, Fill fill, Drain drain);
  std::byte* bounce(int peer) const { return head_ + layout_.bounce + (2 * peer + half_) * kPieceBytes; }

  std::shared_ptr<Memory> memory_;
  Layout layout_;
  std::byte* head_;
  Slots slots_;
  size_t end_;
  std::vector<Arena> arenas_;
  int half_ = 0;
};

Result<std::unique_ptr<Communicator>> ShmCommunicator::make(Mesh& mesh, double connect_timeout_s, double timeout_s) {
  REMUDA_ASSIGN(std::shared_ptr<Memory> memory, share_memory(mesh, connect_timeout_s));
  auto head = memory->map(0, Layout(mesh.size).arenas);
  if (!head)  // the other ranks assume that all have it
    return tl::unexpected(Error{ErrorKind::lost_peer, head.error().message, mesh.rank});
  return std::make_unique<ShmCommunicator>(Peers(mesh.rank, std::move(mesh.control)), timeout_s, std::move(memory),
                                           *head);
}

Result<void> ShmCommunicator::step(const Call& call) {
  slots_.step();
  return slots_.wait(call, peers(), deadline_s());
}

Result<void> ShmCommunicator::agree_on(const Call& call) {
  slots_.announce(call);
  REMUDA_TRY(step(call));
  return slots_.check_same(call);
}

Result<std::span<std::byte>> ShmCommunicator::do_allocate(const Call& call) {
  REMUDA_TRY(agree_on(call));
  const size_t stride = std::max(kPage, whole_pages(call.bytes));
  REMUDA_ASSIGN(std::byte* const base, memory_->map(end_, stride * size()));
  arenas_.push_back({base, stride, end_});
  end_ += stride * size();
  REMUDA_TRY(step(call));  // where one rank could not map it, no rank continues
  return std::span(base + rank() * stride, call.bytes);
}

const Arena* ShmCommunicator::arena_of(const void* values) const {
  const auto* at = static_cast<const std::byte*>(values);
  for (const Arena& arena : arenas_) {
    const std::byte* mine = arena.base + rank() * arena.stride;
    if (std::less_equal<>()(mine, at) && std::less<>()(at, mine + arena.stride)) return &arena;
  }
  return nullptr;
}

uint64_t ShmCommunicator::offset_of(const void* values) const {
  const Arena* arena = arena_of(values);
  if (!arena) return 0;
  return arena->offset - layout_.arenas +
         (static_cast<const std::byte*>(values) - arena->base - rank() * arena->stride);
}

template <typename T>
std::vector<T*> ShmCommunicator::on_all_ranks(T* mine) const {
  const Arena* arena = arena_of(mine);
  REMUDA_CHECK(arena, "the values lie in allocate()d memory");
  std::vector<T*> all(size());
  for (int peer = 0; peer < size(); ++peer)
    all[peer] = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(mine) +
                                     (peer - rank()) * static_cast<ptrdiff_t>(arena->stride));
  return all;
}

template <typename T>
Result<void> ShmCommunicator::reduce(const Call& call, std::span<T> values) {
  REMUDA_TRY(agree_on(call));
  if (values.empty()) return {};
  const Chunk own = even_parts(size(), values.size(), sizeof(T)).of(rank());
  if (own.size() > 0) {
    const std::vector<T*> buffers = on_all_ranks(values.data() + own.begin);
    const std::vector<const T*> in(buffers.begin(), buffers.end());
    sum_in_rank_order<T>(in, buffers, own.size());
  }
  return step(call);
}

template <typename T>
Result<void> ShmCommunicator::scatter(const Call& call, std::span<T> values, const Parts& parts) {
  REMUDA_TRY(agree_on(call));
  if (values.empty()) return {};
  const Chunk own = parts.of(rank());
  if (own.size() > 0) {
    T* const mine = values.data() + own.begin;
    const std::vector<T*> buffers = on_all_ranks(mine);
    const std::vector<const T*> in(buffers.begin(), buffers.end());
    sum_in_rank_order<T>(in, std::span(&mine, 1), own.size());
  }
  return step(call);  // until here, others read this rank's buffer
}

Result<void> ShmCommunicator::do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) {
  REMUDA_TRY(agree_on(call));
  if (bytes.empty()) return {};
  const std::vector<std::byte*> all = on_all_ranks(bytes.data());
  for (int peer = 0; peer < size(); ++peer) {
    const Chunk theirs = parts.of(peer);
    if (peer != rank()) std::memcpy(bytes.data() + theirs.begin, all[peer] + theirs.begin, theirs.size());
  }
  return step(call);
}

// Double-buffered: a half is filled again only after all ranks have passed the step of the other half, and so have
// drained this one.
template <typename Fill, typename Drain>
Result<void> ShmCommunicator::in_pieces(const Call& call, Fill fill, Drain drain) {
  slots_.announce(call);
  size_t at = 0;
  do {
    half_ ^= 1;
    const size_t length = std::min(kPieceBytes, call.bytes - at);
    fill(at, length);
    REMUDA_TRY(step(call));
    if (at == 0) REMUDA_TRY(slots_.check_same(call));
    drain(at, length);
    at += length;
  } while (at < call.bytes);
  return {};
}

Result<void> ShmCommunicator::do_broadcast(const Call& call, std::span<std::byte> bytes) {
  const auto fill = [&](size_t at, size_t length) {
    if (rank() == call.root) std::copy_n(bytes.data() + at, length, bounce(rank()));
  };
  const auto drain = [&](size_t at, size_t length) {
    if (rank() != call.root) std::copy_n(bounce(call.root), length, bytes.data() + at);
  };
  return in_pieces(call, fill, drain);
}

Result<void> ShmCommunicator::do_all_gather(const Call& call, std::span<const std::byte> mine,
                                            std::span<std::byte> all) {
  const auto fill = [&](size_t at, size_t length) { std::copy_n(mine.data() + at, length, bounce(rank())); };
  const auto drain = [&](size_t at, size_t length) {
    for (int peer = 0; peer < size(); ++peer) std::copy_n(bounce(peer), length, all.data() + peer * mine.size() + at);
  };
  return in_pieces(call, fill, drain);
}

}  // namespace

Result<std::unique_ptr<Communicator>> make(Mesh& mesh, double connect_timeout_s, double timeout_s) {
  return ShmCommunicator::make(mesh, connect_timeout_s, timeout_s);
}

}  // namespace remuda::comm::shm
