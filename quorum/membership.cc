#include "quorum/membership.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/clock.h"
#include "comm/rendezvous.h"

namespace remuda::quorum {
namespace {

constexpr double kResend_s = 0.1;       // a rank is taken for there when it was heard within two seconds
constexpr double kPause_s = 0.01;       // between two messages that differ
constexpr double kReport_s = 2;         // see ConsensusRules
constexpr double kIntroduction_s = 10;  // datagrams need milliseconds, unless something is in their way
constexpr int kFarewells = 3;
constexpr int kMostAtOnce = 1000;

std::span<std::byte> bytes_of(auto& value) { return std::as_writable_bytes(std::span(&value, 1)); }

}  // namespace

Result<Membership> Membership::found(comm::Communicator& communicator, const std::vector<int>& numbers,
                                     const std::string& address, const std::string& secret, uint32_t label) {
  Seal::Salt salt = Seal::make_salt();
  REMUDA_TRY(communicator.broadcast(bytes_of(salt), 0, label));
  auto post = Post::open(address);
  comm::Contact mine = post ? comm::contact_of(post->endpoint()) : comm::Contact();
  std::vector<comm::Contact> all(static_cast<size_t>(communicator.size()));
  REMUDA_TRY(communicator.all_gather(bytes_of(mine), std::as_writable_bytes(std::span(all)), label));
  if (!post) return tl::unexpected(post.error());
  std::vector<comm::Endpoint> places(size_t(numbers.back()) + 1);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].port == 0)
      return tl::unexpected(Error{ErrorKind::lost_peer,
                                  fmt::format("rank {} has no address at which others reach it", numbers[i]), int(i)});
    places[size_t(numbers[i])] = {std::string(all[i].address, ::strnlen(all[i].address, sizeof all[i].address)),
                                  static_cast<int>(all[i].port)};
  }
  Membership membership(numbers.at(size_t(communicator.rank())), std::move(*post), Seal(secret, salt),
                        std::move(places));
  REMUDA_TRY(membership.introduce(communicator, numbers, label));
  return membership;
}

/// Until each hears each.
Result<void> Membership::introduce(comm::Communicator& communicator, const std::vector<int>& numbers, uint32_t label) {
  Message own{.generation = kHello, .rank = rank_};
  std::set<int> unheard(numbers.begin(), numbers.end()), deaf = unheard;  // those that do not hear this one yet
  unheard.erase(rank_);
  deaf.erase(rank_);
  const double end_s = comm::deadline_after(kIntroduction_s);
  while (monotonic_s() < end_s && !(unheard.empty() && deaf.empty())) {
    own.heard_from.clear();
    for (const int number : numbers)
      if (number != rank_ && !unheard.contains(number)) own.heard_from.push_back(number);
    say(own, nullptr, 0);
    post_.wait(std::min(end_s, comm::deadline_after(kResend_s)));
    (void)post_.undelivered();
    for (const Message& message : received()) {
      if (message.generation != kHello) continue;
      unheard.erase(message.rank);
      if (std::ranges::find(message.heard_from, rank_) != message.heard_from.end()) deaf.erase(message.rank);
    }
  }
  own.heard_from = numbers;
  say(own, nullptr, 0);
  const int32_t missing = unheard.empty() ? -1 : *unheard.begin();
  std::vector<int32_t> missed(numbers.size());
  REMUDA_TRY(
      communicator.all_gather(std::as_bytes(std::span(&missing, 1)), std::as_writable_bytes(std::span(missed)), label));
  for (size_t i = 0; i < numbers.size(); ++i)
    if (missed[i] >= 0)
      return failed(
          fmt::format("rank {} at {} hears nothing of rank {} at {}: elastic.ranks_lost and elastic.join need "
                      "datagrams (UDP) between all hosts",
                      numbers[i], places_[size_t(numbers[i])].text(), missed[i], places_[size_t(missed[i])].text()));
  return {};
}

/// Messages that have come, of ranks of this run; no more at a time than leave time for other things.
std::vector<Message> Membership::received() const {
  std::vector<Message> messages;
  for (int left = kMostAtOnce; left > 0; --left) {
    const auto datagram = post_.receive();
    if (!datagram) break;
    const auto text = seal_.open(*datagram);
    if (!text) continue;
    auto message = parse_message(*text);
    if (message && size_t(message->rank) < places_.size() && places_[size_t(message->rank)].port > 0)
      messages.push_back(std::move(*message));
  }
  return messages;
}

void Membership::say(const Message& message, Consensus* consensus, double now_s) const {
  const std::string closed = seal_.close(to_text(message));
  for (size_t rank = 0; rank < places_.size(); ++rank)
    if (int(rank) != rank_ && places_[rank].port > 0 && !post_.send(places_[rank], closed) && consensus)
      consensus->miss(int(rank), now_s);
}

void Membership::listen(Consensus& consensus, int generation, double now_s) const {
  for (const comm::Endpoint& place : post_.undelivered())
    for (size_t rank = 0; rank < places_.size(); ++rank)
      if (places_[rank].text() == place.text()) consensus.miss(int(rank), now_s);
  for (const Message& message : received()) {
    consensus.receive(message, now_s);
    const auto old = decided_.find(message.generation);
    if (old != decided_.end() && message.generation < generation && !message.decided)
      post_.send(places_[size_t(message.rank)], seal_.close(to_text(old->second)));
  }
}

Result<Agreement> Membership::agree(const Occasion& occasion) {
  REMUDA_ASSIGN(Fd listener, comm::listen_on({post_.endpoint().address, 0}));
  const comm::Endpoint meeting = comm::local_endpoint(listener.get());
  ConsensusRules rules{.generation = occasion.generation,
                       .members = occasion.members,
                       .least = occasion.least,
                       .newcomer = occasion.newcomer,
                       .notice_s = occasion.notice_s,
                       .report_s = kReport_s};
  for (const int rank : occasion.members) rules.hosts.push_back(places_.at(size_t(rank)).address);
  Consensus consensus(std::move(rules),
                      {.rank = rank_,
                       .lost = occasion.lost.rank,
                       .cause = occasion.lost.cause,
                       .done = occasion.is_done,
                       .welcomes = occasion.welcomes,
                       .address = meeting.address,
                       .port = meeting.port},
                      monotonic_s());
  Message said;
  double said_s = 0;
  for (double now_s = monotonic_s();; now_s = monotonic_s()) {
    consensus.advance(now_s);
    if (consensus.may_leave(now_s)) break;
    const double next_s = said_s + (consensus.message() == said ? kResend_s : kPause_s);
    if (now_s >= next_s) {
      said = consensus.message();
      said_s = now_s;
      say(said, &consensus, now_s);
    }
    post_.wait(now_s >= next_s ? now_s + kPause_s : next_s);
    listen(consensus, occasion.generation, monotonic_s());
  }
  for (int i = 0; i < kFarewells; ++i) say(consensus.message(), nullptr, 0);
  if (consensus.message().decided) decided_[occasion.generation] = consensus.message();
  const Verdict& verdict = *consensus.verdict();
  if (verdict.now == Verdict::Now::end) return failed(verdict.why);
  Agreement agreement{.is_done = verdict.now == Verdict::Now::done,
                      .ranks = verdict.value.ranks,
                      .meeting = {verdict.value.address, verdict.value.port},
                      .listener = std::move(listener)};
  for (const int rank : occasion.members)
    if (std::ranges::find(agreement.ranks, rank) == agreement.ranks.end())
      agreement.lost.push_back({rank, consensus.what_became_of(rank)});
  return agreement;
}

}  // namespace remuda::quorum
