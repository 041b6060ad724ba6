// The first rank of each host leads it: it alone speaks with other hosts. all_reduce: each rank of a host adds up a
// slice of the buffers of all of them into the leader's; the leaders reduce these over TCP; the others copy the sum.
// What goes between hosts is what one rank of each would send.

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "comm/hosts.h"
#include "comm/reduce.h"
#include "comm/shm/factory.h"
#include "comm/shm/group.h"
#include "comm/streams.h"
#include "comm/transport.h"

namespace remuda::comm::shm {
namespace {

/// Who waits for another that waits itself must wait longer, or it would name the wrong one; and the other may have
/// come to the call as much as a timeout later.
double grace_s(double timeout_s) { return std::max(0.5, timeout_s); }

const std::vector<int>& host_of(const Hosts& hosts, int number) {
  const auto has = [&](const auto& numbers) { return std::ranges::find(numbers, number) != numbers.end(); };
  return *std::ranges::find_if(hosts, has);
}

class HostsCommunicator final : public TransportCommunicator {
 public:
  HostsCommunicator(Mesh mesh, Hosts hosts, Origin origin, std::unique_ptr<Group> group)
      : TransportCommunicator(mesh, origin),
        streams_(std::move(mesh.data), origin->stripe_bytes, peers()),
        hosts_(std::move(hosts)),
        here_(host_of(hosts_, rank())),
        group_(std::move(group)) {
    for (const auto& numbers : hosts_) leaders_.push_back(ranks()[static_cast<size_t>(numbers.front())]);
  }

  std::string transport() const override {
    return fmt::format("shared memory, {}tcp between hosts", streams_.encrypted() ? "encrypted " : "");
  }
  uint64_t sent_bytes() const override { return streams_.sent_bytes(); }
  std::vector<std::vector<int>> hosts() const override { return hosts_; }

 protected:
  Result<std::span<std::byte>> do_allocate(const Call& call) override;
  Result<void> do_all_reduce(const Call& call, std::span<std::byte> bytes) override;
  Result<void> do_reduce_scatter(const Call& call, std::span<std::byte> bytes, const Parts& parts, std::byte* sum,
                                 const std::vector<bool>& silent) override;
  Result<void> do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) override;
  Result<void> do_broadcast(const Call& call, std::span<std::byte> bytes, int root) override;
  Result<void> do_all_gather(const Call& call, std::span<const std::byte> mine, std::span<std::byte> all) override;
  Result<void> do_barrier(const Call& call) override { return meet(call); }
  uint64_t offset_of(const void* values) const override { return group_->offset_of(values); }
  void hang_up() override { streams_.hang_up(); }

 private:
  bool leads() const { return group_->mine() == 0; }
  int host_count() const { return static_cast<int>(hosts_.size()); }
  /// For the ranks of this host to come to the call; and for its leader, who may wait for those of other hosts.
  Patience for_ranks(const Call& call) { return {call, peers(), deadline_s()}; }
  Patience for_leader(const Call& call) { return {call, peers(), deadline_s() + 2 * grace_s(timeout_s())}; }
  /// The leaders' part of a call of so many bytes: `fill` says what goes to each other host and comes from it. Nothing
  /// on other ranks.
  Result<void> between_hosts(const Call& call, size_t bytes, const std::function<void(Stripe&)>& fill);
  Result<void> meet(const Call& call);
  /// Where the sums of `bytes` have room on each rank: in their place, or in memory of their own if they are wider.
  Result<std::span<std::byte>> room_for_sums(const Call& call, std::span<std::byte> bytes);
  /// The sum of this host's buffers, in its leader's `sums`. `silent`: one per rank of all hosts, or none of them.
  Result<void> add_up_here(const Call& call, std::span<std::byte> bytes, std::span<std::byte> sums,
                           const std::vector<bool>& silent = {});

  Streams streams_;
  Hosts hosts_;
  std::vector<int> here_;  // the numbers of this host's ranks
  std::unique_ptr<Group> group_;
  std::vector<int> leaders_;   // not by their numbers, but as connections know them
  std::span<std::byte> wide_;  // see room_for_sums()
};

Result<void> HostsCommunicator::between_hosts(const Call& call, size_t bytes,
                                              const std::function<void(Stripe&)>& fill) {
  if (!leads()) return {};
  return streams_.run(call, leaders_, bytes, deadline_s() + grace_s(timeout_s()), fill);
}

Result<void> HostsCommunicator::meet(const Call& call) {
  REMUDA_TRY(group_->agree_on(for_ranks(call)));
  REMUDA_TRY(between_hosts(call, 0, [](Stripe&) {}));
  return group_->step(for_leader(call));
}

Result<std::span<std::byte>> HostsCommunicator::do_allocate(const Call& call) {
  REMUDA_TRY(meet(call));
  return group_->allocate(for_leader(call), call.bytes);
}

Result<std::span<std::byte>> HostsCommunicator::room_for_sums(const Call& call, std::span<std::byte> bytes) {
  const size_t wide = bytes.size() / size_of(call.type) * size_of(sum_of(call.type));
  if (wide == bytes.size()) return bytes;
  if (wide_.size() < wide) {
    REMUDA_ASSIGN(wide_, group_->allocate(for_ranks(call), wide));
  }
  return wide_.first(wide);
}

Result<void> HostsCommunicator::add_up_here(const Call& call, std::span<std::byte> bytes, std::span<std::byte> sums,
                                            const std::vector<bool>& silent) {
  std::vector<bool> silent_here;
  for (const int rank : here_) silent_here.push_back(!silent.empty() && silent[static_cast<size_t>(rank)]);
  const Chunk own = even_parts(group_->size(), bytes.size(), 1).of(group_->mine());
  const bool is_there = group_->size() == 1 && sums.data() == bytes.data();
  if (own.size() > 0 && !is_there) {
    const size_t element = size_of(call.type), begin = own.begin / element * size_of(sum_of(call.type));
    std::byte* const to = group_->on_all(sums.data() + begin).front();
    add_up(call.type, group_->on_all(bytes.data() + own.begin, silent_here), std::span(&to, 1), own.size() / element);
  }
  return group_->step(for_ranks(call));
}

Result<void> HostsCommunicator::do_all_reduce(const Call& call, std::span<std::byte> bytes) {
  REMUDA_TRY(group_->agree_on(for_ranks(call)));
  REMUDA_TRY(add_up_here(call, bytes, bytes));
  const Parts parts = even_parts(host_count(), bytes.size(), 1);
  REMUDA_TRY(between_hosts(call, bytes.size(), [&](Stripe& stripe) {
    Exchange& exchange = stripe.exchange;
    const auto own = stripe.of(part_of(bytes, parts.of(exchange.mine())));
    for (int host = 0; host < host_count(); ++host) {
      if (host == exchange.mine()) continue;
      const auto theirs = stripe.of(part_of(bytes, parts.of(host)));
      exchange.flow(host).values.add(theirs);
      exchange.flow(host).finished.add(own);
      exchange.flow(host).in.add(theirs);
    }
    stripe.sum.begin(exchange.mine(), host_count(), call.type, own);
    exchange.add_up(stripe.sum);
  }));
  REMUDA_TRY(group_->step(for_leader(call)));
  if (!leads() && !bytes.empty()) std::memcpy(bytes.data(), group_->on_all(bytes.data()).front(), bytes.size());
  return group_->step(for_leader(call));  // until here, others read the leader's buffer
}

// Between hosts go sums, of values of 16 bits, too: one rounding is all that these cost.
Result<void> HostsCommunicator::do_reduce_scatter(const Call& call, std::span<std::byte> bytes, const Parts& parts,
                                                  std::byte* sum, const std::vector<bool>& silent) {
  REMUDA_TRY(group_->agree_on(for_ranks(call)));
  REMUDA_ASSIGN(const std::span<std::byte> sums, room_for_sums(call, bytes));
  REMUDA_TRY(add_up_here(call, bytes, sums, silent));
  std::vector<bool> silent_hosts;
  for (const auto& numbers : hosts_)
    silent_hosts.push_back(std::ranges::all_of(numbers, [&](int rank) { return silent[static_cast<size_t>(rank)]; }));
  const size_t widening = size_of(sum_of(call.type)) / size_of(call.type);
  const auto sums_of = [&](int rank) {
    return part_of(sums, {parts.of(rank).begin * widening, parts.of(rank).end * widening});
  };
  REMUDA_TRY(between_hosts(call, sums.size(), [&](Stripe& stripe) {
    Exchange& exchange = stripe.exchange;
    Pieces<std::byte> own;
    for (int host = 0; host < host_count(); ++host)
      for (const int rank : hosts_[static_cast<size_t>(host)])
        if (host == exchange.mine())
          own.add(stripe.of(sums_of(rank)));
        else if (!silent_hosts[static_cast<size_t>(exchange.mine())])
          exchange.flow(host).values.add(stripe.of(sums_of(rank)));
    stripe.sum.begin(exchange.mine(), host_count(), sum_of(call.type), std::move(own), nullptr, silent_hosts);
    exchange.add_up(stripe.sum);
  }));
  REMUDA_TRY(group_->step(for_leader(call)));
  if (const auto own = sums_of(rank()); !own.empty()) {
    const std::byte* from = group_->on_all(own.data()).front();
    if (from != sum) std::memcpy(sum, from, own.size());
  }
  return group_->step(for_leader(call));
}

Result<void> HostsCommunicator::do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) {
  REMUDA_TRY(group_->agree_on(for_ranks(call)));
  const auto all = bytes.empty() ? std::vector<std::byte*>(here_.size()) : group_->on_all(bytes.data());
  REMUDA_TRY(between_hosts(call, bytes.size(), [&](Stripe& stripe) {
    Exchange& exchange = stripe.exchange;
    for (int host = 0; host < host_count(); ++host) {
      if (host == exchange.mine()) continue;
      for (size_t number = 0; number < here_.size(); ++number)
        exchange.flow(host).finished.add(
            stripe.of(part_of(std::span(all[number], bytes.size()), parts.of(here_[number]))));
      for (const int rank : hosts_[static_cast<size_t>(host)])
        exchange.flow(host).in.add(stripe.of(part_of(bytes, parts.of(rank))));
    }
  }));
  REMUDA_TRY(group_->step(for_leader(call)));
  for (int rank = 0; rank < size(); ++rank) {
    const Chunk part = parts.of(rank);
    const auto found = std::ranges::find(here_, rank);
    const std::byte* from = all[found == here_.end() ? 0 : static_cast<size_t>(found - here_.begin())];
    if (from != bytes.data() && part.size() > 0) std::memcpy(bytes.data() + part.begin, from + part.begin, part.size());
  }
  return group_->step(for_leader(call));
}

Result<void> HostsCommunicator::do_broadcast(const Call& call, std::span<std::byte> bytes, int root) {
  REMUDA_TRY(group_->agree_on(for_ranks(call)));
  const auto source = &host_of(hosts_, root) - hosts_.data();
  const auto number = std::ranges::find(here_, root) - here_.begin();
  const bool is_here = number < std::ssize(here_);
  if (is_here) REMUDA_TRY(group_->pass_on(for_ranks(call), bytes, static_cast<int>(number), false));
  REMUDA_TRY(between_hosts(call, bytes.size(), [&](Stripe& stripe) {
    stripe.exchange.broadcast(stripe.of(bytes), static_cast<int>(source));
  }));
  return is_here ? group_->step(for_leader(call)) : group_->pass_on(for_leader(call), bytes, 0, false);
}

Result<void> HostsCommunicator::do_all_gather(const Call& call, std::span<const std::byte> mine,
                                              std::span<std::byte> all) {
  REMUDA_TRY(group_->agree_on(for_ranks(call)));
  const auto of = [&](int rank) { return all.subspan(static_cast<size_t>(rank) * mine.size(), mine.size()); };
  const auto place = [&](int number) { return of(here_[static_cast<size_t>(number)]); };
  REMUDA_TRY(group_->gather(for_ranks(call), mine, place, false));
  REMUDA_TRY(between_hosts(call, all.size(), [&](Stripe& stripe) {
    Exchange& exchange = stripe.exchange;
    for (int host = 0; host < host_count(); ++host) {
      if (host == exchange.mine()) continue;
      for (const int rank : here_) exchange.flow(host).finished.add(stripe.of(of(rank)));
      for (const int rank : hosts_[static_cast<size_t>(host)]) exchange.flow(host).in.add(stripe.of(of(rank)));
    }
  }));
  return group_->pass_on(for_leader(call), all, 0, false);
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_between_hosts(Mesh& mesh, const Hosts& hosts, const Origin& origin) {
  std::vector<int> here;
  for (const int number : host_of(hosts, mesh.number())) here.push_back(mesh.ranks[static_cast<size_t>(number)]);
  auto group = Group::make(mesh, here, origin->connect_timeout_s);
  if (!group && group.error().kind != ErrorKind::failed) return tl::unexpected(group.error());
  REMUDA_ASSIGN(const bool all, all_say(mesh, group.has_value(), deadline_after(origin->connect_timeout_s)));
  if (!all) return failed("the ranks of some host cannot share memory");
  return std::make_unique<HostsCommunicator>(std::move(mesh), hosts, origin, std::move(*group));
}

}  // namespace remuda::comm::shm
