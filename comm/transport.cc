#include "comm/transport.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "comm/connect.h"
#include "comm/digest.h"
#include "comm/wire.h"

namespace remuda::comm {

TransportCommunicator::TransportCommunicator(Mesh& mesh, Origin origin)
    : origin_(std::move(origin)),
      number_(mesh.number()),
      ranks_(std::move(mesh.ranks)),
      peers_(mesh.rank, std::move(mesh.control)),
      timeout_s_(origin_->timeout_s) {}

template <typename Body>
auto TransportCommunicator::collective(Call call, Body body) -> decltype(body(call)) {
  if (failure_) return tl::unexpected(*failure_);
  call.sequence = ++sequence_;
  deadline_s_ = deadline_after(timeout_s_);
  auto result = body(call);
  if (!result) {
    failure_ = result.error();
    peers_.report_failure(*failure_, sequence_);
    hang_up();
  }
  return result;
}

Result<std::span<std::byte>> TransportCommunicator::allocate(size_t bytes) {
  const Call call{.kind = Call::Kind::allocate, .bytes = bytes};
  return collective(call, [&](const Call& c) { return do_allocate(c); });
}

/// A call that works on allocate()d memory.
Call TransportCommunicator::in_place(Call::Kind kind, uint32_t label, const Values& values) const {
  return {.kind = kind,
          .type = values.type,
          .label = label,
          .bytes = values.bytes.size(),
          .offset = offset_of(values.bytes.data())};
}

Result<void> TransportCommunicator::all_reduce(Values values, uint32_t label) {
  REMUDA_CHECK(sum_of(values.type) == values.type, "the sum of 16-bit values has no room in their place");
  return collective(in_place(Call::Kind::all_reduce, label, values),
                    [&](const Call& c) { return do_all_reduce(c, values.bytes); });
}

Result<void> TransportCommunicator::reduce_scatter(Values values, const Parts& parts, Values sum, uint32_t label,
                                                   const std::vector<bool>& silent) {
  REMUDA_CHECK(parts.ranks() == size() && parts.count() == values.count(),
               "the parts divide the values among all ranks");
  REMUDA_CHECK(sum.type == sum_of(values.type) && sum.count() == parts.of(rank()).size(),
               "the sum has the own part's elements");
  Call call = in_place(Call::Kind::reduce_scatter, label, values);
  call.parts = parts.digest();
  std::vector<bool> of_all = silent;
  of_all.resize(static_cast<size_t>(size()));
  for (const bool one : of_all) call.parts = 31 * call.parts + (one ? 1 : 0);
  return collective(call, [&](const Call& c) {
    return do_reduce_scatter(c, values.bytes, parts.in_bytes(size_of(c.type)), sum.bytes.data(), of_all);
  });
}

Result<void> TransportCommunicator::gather_parts(std::span<std::byte> bytes, const Parts& parts, uint32_t label) {
  REMUDA_CHECK(parts.ranks() == size() && parts.count() == bytes.size(), "the parts divide the bytes among all ranks");
  Call call = in_place(Call::Kind::gather_parts, label, {Element::bytes, bytes});
  call.parts = parts.digest();
  return collective(call, [&](const Call& c) { return do_gather_parts(c, bytes, parts); });
}

Result<void> TransportCommunicator::broadcast(std::span<std::byte> bytes, int root, uint32_t label) {
  REMUDA_CHECK(root >= 0 && root < size(), "the root of a broadcast is a rank of the job");
  const Call call{
      .kind = Call::Kind::broadcast, .label = label, .bytes = bytes.size(), .root = ranks_[static_cast<size_t>(root)]};
  return collective(call, [&](const Call& c) { return do_broadcast(c, bytes, root); });
}

Result<void> TransportCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                               uint32_t label) {
  REMUDA_CHECK(all.size() == mine.size() * size(), "all_gather's output holds every rank's part");
  const Call call{.kind = Call::Kind::all_gather, .label = label, .bytes = mine.size()};
  return collective(call, [&](const Call& c) { return do_all_gather(c, mine, all); });
}

Result<void> TransportCommunicator::all_to_all(std::span<const std::byte> mine, const Parts& parts,
                                               std::span<std::byte> theirs, uint32_t label) {
  REMUDA_CHECK(parts.ranks() == size() && parts.count() == mine.size(), "the parts divide the bytes among all ranks");
  REMUDA_CHECK(theirs.size() == parts.of(rank()).size() * size_t(size()), "there is room for a part from every rank");
  const Call call{.kind = Call::Kind::all_to_all, .label = label, .bytes = mine.size(), .parts = parts.digest()};
  return collective(call, [&](const Call& c) { return do_all_to_all(c, mine, parts, theirs); });
}

Result<void> TransportCommunicator::do_all_to_all(const Call& call, std::span<const std::byte> mine, const Parts& parts,
                                                  std::span<std::byte> theirs) {
  std::vector<std::byte> all(mine.size() * size_t(size()));
  REMUDA_TRY(do_all_gather(call, mine, all));
  const Chunk own = parts.of(rank());
  for (size_t peer = 0; peer < size_t(size()); ++peer)
    std::ranges::copy(std::span(all).subspan(peer * mine.size() + own.begin, own.size()),
                      theirs.begin() + ptrdiff_t(peer * own.size()));
  return {};
}

Result<void> TransportCommunicator::barrier(uint32_t label) {
  const Call call{.kind = Call::Kind::barrier, .label = label};
  return collective(call, [&](const Call& c) { return do_barrier(c); });
}

Result<std::unique_ptr<Communicator>> TransportCommunicator::split(std::span<const int> ranks, uint32_t label) {
  std::vector<int> some;
  for (const int rank : ranks) {
    REMUDA_CHECK(rank >= 0 && rank < size(), "the ranks of a split are some of this communicator's");
    REMUDA_CHECK(std::ranges::count(ranks, rank) == 1, "each rank of a split is given once");
    some.push_back(ranks_[static_cast<size_t>(rank)]);
  }
  REMUDA_CHECK(!some.empty(), "a split has ranks");
  const Call call{
      .kind = Call::Kind::split, .label = label, .bytes = some.size(), .root = some.front(), .parts = digest_of(some)};
  return collective(call, [&](const Call& c) { return connect_some(c, some); });
}

// The first of them listens, says where to all, and they meet there as the ranks of the job have met.
Result<std::unique_ptr<Communicator>> TransportCommunicator::connect_some(const Call& call, std::vector<int> some) {
  const int me = peers_.rank(), leader = some.front();
  Fd listener;
  Contact contact;
  if (me == leader) {
    REMUDA_ASSIGN(listener, listen_on({origin_->bind_address, 0}));
    contact = contact_of(local_endpoint(listener.get()));
  }
  const auto root = std::ranges::find(ranks_, leader) - ranks_.begin();
  REMUDA_TRY(do_broadcast(call, std::as_writable_bytes(std::span(&contact, 1)), static_cast<int>(root)));
  if (std::ranges::find(some, me) == some.end()) return nullptr;
  const Endpoint meeting = me == leader ? Endpoint{} : endpoint_of(contact, peers_.socket_of(leader));
  Terms terms = origin_->terms;
  terms.push_back({fmt::format("split #{} of ranks {}", call.sequence, fmt::join(ranks_, ",")),
                   fmt::format("{}", fmt::join(some, ","))});
  return connect_ranks({.rank = me,
                        .size = origin_->size,
                        .master_address = meeting.address,
                        .master_port = meeting.port,
                        .bind_address = origin_->bind_address,
                        .listener = std::move(listener),
                        .secret = origin_->secret,
                        .encryption = origin_->encryption,
                        .terms = std::move(terms),
                        .host = origin_->host,
                        .transport = origin_->transport,
                        .streams = origin_->streams,
                        .stripe_bytes = origin_->stripe_bytes,
                        .timeout_s = timeout_s_,
                        .connect_timeout_s = std::min(origin_->connect_timeout_s, timeout_s_)},
                       std::move(some));
}

}  // namespace remuda::comm
