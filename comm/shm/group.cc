#include "comm/shm/group.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "base/check.h"

namespace remuda::comm::shm {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPieceBytes = 128 << 10;  // half of a rank's bounce buffer

constexpr size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// The file: one page for the token, the slots, two bounce pieces per rank, then the arenas as they are allocated.
constexpr size_t kSlots = kPage;
size_t bounce_begin(size_t ranks) { return kSlots + whole_pages(ranks * sizeof(Slot)); }
size_t arenas_begin(size_t ranks) { return bounce_begin(ranks) + ranks * 2 * kPieceBytes; }

}  // namespace

Result<std::unique_ptr<Group>> Group::make(const Mesh& mesh, std::span<const int> ranks, double timeout_s) {
  REMUDA_ASSIGN(std::shared_ptr<Memory> memory, share_memory(mesh, ranks, timeout_s));
  auto head = memory->map(0, arenas_begin(ranks.size()));
  if (!head) return tl::unexpected(Error{ErrorKind::lost_peer, head.error().message, mesh.rank});
  const int mine = static_cast<int>(std::ranges::find(ranks, mesh.rank) - ranks.begin());
  return std::unique_ptr<Group>(new Group({ranks.begin(), ranks.end()}, mine, std::move(memory), *head));
}

Group::Group(std::vector<int> ranks, int mine, std::shared_ptr<Memory> memory, std::byte* head)
    : ranks_(std::move(ranks)),
      mine_(mine),
      memory_(std::move(memory)),
      head_(head),
      slots_(reinterpret_cast<Slot*>(head + kSlots), ranks_, mine),
      end_(arenas_begin(ranks_.size())) {}

Result<void> Group::step(const Patience& patience) {
  slots_.step();
  return slots_.wait(patience.call, patience.peers, patience.deadline_s);
}

Result<void> Group::agree_on(const Patience& patience) {
  slots_.announce(patience.call);
  REMUDA_TRY(step(patience));
  return slots_.check_same(patience.call);
}

Result<std::span<std::byte>> Group::allocate(const Patience& patience, size_t bytes) {
  const size_t stride = std::max(kPage, whole_pages(bytes));
  auto base = memory_->map(end_, stride * ranks_.size());
  if (!base) return failed(fmt::format("rank {} {}", ranks_[static_cast<size_t>(mine_)], base.error().message));
  arenas_.push_back({*base, stride, offset_});
  end_ += stride * ranks_.size();
  offset_ += stride;
  REMUDA_TRY(step(patience));  // where one rank could not map it, no rank continues
  return std::span(*base + stride_of(arenas_.back(), mine_), bytes);
}

const Group::Arena* Group::arena_of(const void* values) const {
  const auto* at = static_cast<const std::byte*>(values);
  for (const Arena& arena : arenas_) {
    const std::byte* mine = arena.base + stride_of(arena, mine_);
    if (std::less_equal<>()(mine, at) && std::less<>()(at, mine + arena.stride)) return &arena;
  }
  return nullptr;
}

uint64_t Group::offset_of(const void* values) const {
  const Arena* arena = arena_of(values);
  if (!arena) return 0;
  return arena->offset +
         static_cast<uint64_t>(static_cast<const std::byte*>(values) - arena->base - stride_of(*arena, mine_));
}

std::vector<std::byte*> Group::on_all(std::byte* mine, const std::vector<bool>& left_out) const {
  const Arena* arena = arena_of(mine);
  REMUDA_CHECK(arena, "the values lie in allocate()d memory");
  std::vector<std::byte*> all;
  for (int number = 0; number < size(); ++number)
    if (left_out.empty() || !left_out[static_cast<size_t>(number)])
      all.push_back(mine + (number - mine_) * static_cast<ptrdiff_t>(arena->stride));
  return all;
}

std::byte* Group::bounce(int number) const {
  return head_ + bounce_begin(ranks_.size()) + (2 * static_cast<size_t>(number) + half_) * kPieceBytes;
}

// Double-buffered: a half is filled again only after all ranks have passed the step of the other half, and so have
// drained this one.
template <typename Fill, typename Drain>
Result<void> Group::in_pieces(const Patience& patience, size_t bytes, bool announced, Fill fill, Drain drain) {
  size_t at = 0;
  do {
    half_ ^= 1;
    const size_t length = std::min(kPieceBytes, bytes - at);
    fill(at, length);
    REMUDA_TRY(step(patience));
    if (at == 0 && announced) REMUDA_TRY(slots_.check_same(patience.call));
    drain(at, length);
    at += length;
  } while (at < bytes);
  return {};
}

Result<void> Group::pass_on(const Patience& patience, std::span<std::byte> bytes, int source, bool announced) {
  const auto fill = [&](size_t at, size_t length) {
    if (source == mine_) std::copy_n(bytes.data() + at, length, bounce(source));
  };
  const auto drain = [&](size_t at, size_t length) {
    if (source != mine_) std::copy_n(bounce(source), length, bytes.data() + at);
  };
  return in_pieces(patience, bytes.size(), announced, fill, drain);
}

Result<void> Group::gather(const Patience& patience, std::span<const std::byte> mine,
                           const std::function<std::span<std::byte>(int number)>& place, bool announced) {
  const auto fill = [&](size_t at, size_t length) { std::copy_n(mine.data() + at, length, bounce(mine_)); };
  const auto drain = [&](size_t at, size_t length) {
    for (int number = 0; number < size(); ++number) std::copy_n(bounce(number), length, place(number).data() + at);
  };
  return in_pieces(patience, mine.size(), announced, fill, drain);
}

}  // namespace remuda::comm::shm
