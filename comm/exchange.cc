#include "comm/exchange.h"

#include <algorithm>
#include <fmt/format.h>
#include <poll.h>

#include "base/clock.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

// In each direction at a time, so that data is read from the socket's buffer while it is still in the cache.
constexpr size_t kTurnBytes = 256 << 10;

// Several streams wait for a report on one control connection. One reads it; poll() may not wake the others then.
constexpr int kLookAgainMs = 100;

constexpr size_t kPassedOnBytes = 64 << 10;  // a broadcast of fewer is not worth the second hop

template <typename Byte>
std::span<Byte> one_turn(std::span<Byte> bytes) {
  return bytes.first(std::min(kTurnBytes, bytes.size()));
}

}  // namespace

Exchange::Exchange(const Call& call, std::span<const int> ranks, std::span<const Link> links, Peers& peers, int stop)
    : call_(call), links_(links), peers_(peers), stop_(stop) {
  for (const int rank : ranks) {
    if (rank == peers.rank()) mine_ = static_cast<int>(lanes_.size());
    lanes_.push_back({.number = static_cast<int>(lanes_.size()), .rank = rank});
  }
}

void Exchange::add_up(PartSum& sum) {
  sum_ = &sum;
  ready_ = [&sum] { return sum.done(); };
}

void Exchange::broadcast(std::span<std::byte> bytes, int source) {
  const bool passed_on = ranks() > 2 && bytes.size() >= kPassedOnBytes;
  const Parts parts = even_parts(ranks(), passed_on ? bytes.size() : 0, 1);
  const auto part_for = [&](int number) { return part_of(bytes, parts.of(number)); };
  const auto from_source = [&](auto& pieces, int number) {
    pieces.add(part_for(number));
    pieces.add(passed_on ? part_for(source) : bytes);
  };
  for (Lane& lane : lanes_) {
    if (!is_peer(lane)) continue;
    if (mine_ == source) {
      from_source(lane.flow.finished, lane.number);
    } else if (lane.number == source) {
      from_source(lane.flow.in, mine_);
    } else {
      lane.flow.finished.add(part_for(mine_));
      lane.flow.in.add(part_for(lane.number));
    }
  }
  if (mine_ != source) ready_ = [this, source] { return flow(source).in.taken(); };
}

bool Exchange::has_all_from(const Lane& lane) const {
  return lane.got == sizeof(Call) && lane.flow.in.left() == 0 && (!sum_ || sum_->left(lane.number) == 0);
}

bool Exchange::done(const Lane& lane) const {
  return !is_peer(lane) || (lane.described == sizeof(Call) && lane.flow.values.left() == 0 &&
                            lane.flow.finished.left() == 0 && has_all_from(lane));
}

// What can be sent now, in one place.
std::span<const std::byte> Exchange::next_out(const Lane& lane) const {
  if (lane.described < sizeof(Call)) return std::as_bytes(std::span(&call_, 1)).subspan(lane.described);
  if (lane.flow.values.left() > 0) return lane.flow.values.front();
  const auto& finished = lane.flow.finished;
  const auto front = finished.front();
  return ready_ ? front.first(std::min(front.size(), ready_() - finished.taken())) : front;
}

// Where the next bytes from the peer go.
std::span<std::byte> Exchange::room(Lane& lane) {
  if (lane.got < sizeof(Call)) return std::as_writable_bytes(std::span(&lane.theirs, 1)).subspan(lane.got);
  if (sum_ && sum_->left(lane.number) > 0) return sum_->room(lane.number);
  return lane.flow.in.front();
}

Result<void> Exchange::took(Lane& lane, size_t bytes) {
  if (lane.got < sizeof(Call)) {
    lane.got += bytes;
    return lane.got < sizeof(Call) ? Result<void>() : check_same(peers_.rank(), call_, lane.rank, lane.theirs);
  }
  if (sum_ && sum_->left(lane.number) > 0)
    sum_->take(lane.number, bytes);
  else
    lane.flow.in.take(bytes);
  return {};
}

// What is wrong with the bytes themselves is known best here; why a connection ends, to the peer.
tl::unexpected<Error> Exchange::ended(const Lane& lane) {
  const std::string trouble = links_[lane.rank].trouble();
  if (trouble.empty())
    return tl::unexpected(
        peers_.cause(lane.rank, call_, fmt::format("went away (its connection to rank {} has ended)", peers_.rank())));
  return tl::unexpected(lost_rank(lane.rank,
                                  fmt::format("and rank {} can no longer read what they send each other, as it was "
                                              "changed on the way ({})",
                                              peers_.rank(), trouble),
                                  call_));
}

Result<size_t> Exchange::receive(Lane& lane) {
  const auto to = room(lane);
  if (to.empty()) return size_t{0};
  const ptrdiff_t got = links_[lane.rank].recv_some(one_turn(to));
  if (got < 0) return ended(lane);
  REMUDA_TRY(took(lane, static_cast<size_t>(got)));
  return static_cast<size_t>(got);
}

Result<size_t> Exchange::send(Lane& lane) {
  const auto from = next_out(lane);
  if (from.empty()) return size_t{0};
  if (!lane.begun) links_[lane.rank].begin_message();
  lane.begun = true;
  const bool more =
      lane.described < sizeof(Call) && (lane.flow.values.left() > 0 || (!ready_ && lane.flow.finished.left() > 0));
  const ptrdiff_t sent = links_[lane.rank].send_some(one_turn(from), more);
  if (sent < 0) return ended(lane);
  const auto bytes = static_cast<size_t>(sent);
  sent_bytes_ += bytes;
  if (lane.described < sizeof(Call))
    lane.described += bytes;
  else
    (lane.flow.values.left() > 0 ? lane.flow.values : lane.flow.finished).take(bytes);
  return bytes;
}

// Moves what it can without waiting, a turn in each direction; the bytes moved.
Result<size_t> Exchange::advance(Lane& lane) {
  size_t moved = 0;
  while (!done(lane)) {
    REMUDA_ASSIGN(const size_t got, receive(lane));
    REMUDA_ASSIGN(const size_t sent, send(lane));
    if (got + sent == 0) break;
    moved += got + sent;
  }
  return moved;
}

// Whether all have all; else nothing can be moved now, not even what one peer's values made ready for another.
Result<bool> Exchange::advance_all() {
  for (bool moved = true; moved;) {
    moved = false;
    for (Lane& lane : lanes_) {
      if (!is_peer(lane)) continue;
      REMUDA_ASSIGN(const size_t bytes, advance(lane));
      moved = moved || bytes > 0;
    }
  }
  return std::ranges::all_of(lanes_, [&](const Lane& lane) { return done(lane); });
}

// Of the peers that are not done, one that keeps the others waiting rather than one that waits itself.
const Exchange::Lane* Exchange::waited_for() const {
  const auto first = [&](auto matches) {
    const auto found = std::ranges::find_if(lanes_, [&](const Lane& lane) { return is_peer(lane) && matches(lane); });
    return found == lanes_.end() ? nullptr : &*found;
  };
  if (const Lane* absent = first([](const Lane& lane) { return lane.got < sizeof(Call); })) return absent;
  if (const Lane* behind = first([&](const Lane& lane) { return sum_ && sum_->left(lane.number) > 0; })) return behind;
  return first([&](const Lane& lane) { return !done(lane); });
}

Result<void> Exchange::wait(double deadline_s) {
  std::vector<pollfd> polled;
  for (Lane& lane : lanes_) {
    if (done(lane)) continue;
    if (has_all_from(lane) && peers_.gone(lane.rank)) return ended(lane);
    const int events = (next_out(lane).empty() ? 0 : POLLOUT) | (room(lane).empty() ? 0 : POLLIN);
    if (events != 0) polled.push_back({links_[lane.rank].get(), static_cast<short>(events), 0});
  }
  if (monotonic_s() >= deadline_s)
    return tl::unexpected(lost_rank(waited_for()->rank, "did not answer in time", call_));
  peers_.watch(polled);
  polled.push_back({stop_, POLLIN, 0});
  ::poll(polled.data(), polled.size(), stop_ < 0 ? poll_ms(deadline_s) : poll_ms(deadline_s, kLookAgainMs));
  if (polled.back().revents != 0) return failed("another stream of the call has failed");
  return peers_.check(call_.sequence);
}

Result<void> Exchange::run(double deadline_s) {
  for (;;) {
    REMUDA_ASSIGN(const bool all, advance_all());
    if (all) return {};
    REMUDA_TRY(wait(deadline_s));
  }
}

}  // namespace remuda::comm
