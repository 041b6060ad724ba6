#include "quorum/consensus.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/text.h"

namespace remuda::quorum {
namespace {

constexpr double kFresh_s = 2;      // whoever was heard within this time is there; each sends its message more often
constexpr double kAskAgain_s = 2;   // an attempt takes a few datagrams
constexpr double kLinger_s = 2;     // so that those that were left behind by lost datagrams hear the outcome
constexpr double kDone_s = 10;      // the same where the run is done: others may not have noticed that a rank is lost
constexpr double kMostNotices = 2;  // of notice_s: then there is no agreement

bool contains(std::span<const int> ranks, int rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

bool are_at_odds(const Message& a, const Message& b, bool all_are_there) {
  if (!contains(a.heard_from, b.rank) || !contains(b.heard_from, a.rank)) return true;
  return all_are_there && (a.lost == b.rank || b.lost == a.rank);
}

std::vector<int> ranks_of(const std::vector<Message>& messages) {
  std::vector<int> ranks;
  for (const Message& message : messages) ranks.push_back(message.rank);
  return ranks;
}

}  // namespace

bool is_quorum(std::span<const int> some, std::span<const int> members) {
  if (2 * some.size() != members.size()) return 2 * some.size() > members.size();
  return !some.empty() && some.front() == members.front();
}

std::vector<int> those_that_agree(const std::vector<Message>& present, bool all_are_there) {
  std::vector<Message> left = present;
  for (;;) {
    size_t worst = 0;
    std::ptrdiff_t most = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      const std::ptrdiff_t count = std::ranges::count_if(left, [&](const Message& other) {
        return other.rank != left[i].rank && are_at_odds(left[i], other, all_are_there);
      });
      if (count == 0 || count < most) continue;
      most = count;
      worst = i;
    }
    if (most == 0) return ranks_of(left);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(worst));
  }
}

Consensus::Consensus(ConsensusRules rules, Message own, double now_s)
    : rules_(std::move(rules)), own_(std::move(own)), since_s_(now_s), last_came_s_(now_s), asked_s_(now_s) {
  own_.generation = rules_.generation;
  for (size_t i = 0; i < rules_.members.size(); ++i)
    if (rules_.members[i] != own_.rank) others_.push_back({rules_.members[i], rules_.hosts.at(i), {}, 0, false});
}

bool Consensus::is_present(const Seat& seat, double now_s) const {
  return seat.message && now_s < seat.heard_s + kFresh_s;
}

/// The last messages of those that are there, this rank among them, in order.
std::vector<Message> Consensus::present(double now_s) const {
  std::vector<Message> messages{own_};
  for (const Seat& seat : others_)
    if (is_present(seat, now_s)) messages.push_back(*seat.message);
  std::ranges::sort(messages, {}, &Message::rank);
  return messages;
}

void Consensus::receive(const Message& message, double now_s) {
  const auto seat = std::ranges::find(others_, message.rank, &Seat::rank);
  if (message.generation != rules_.generation || seat == others_.end()) return;
  if (!is_present(*seat, now_s)) last_came_s_ = now_s;
  seat->message = message;
  seat->heard_s = now_s;
  seat->is_missed = false;
  own_.done = own_.done || message.done;
  own_.promised = std::max(own_.promised, message.promised);
  const bool counts = message.accepted >= own_.promised && message.accepted > own_.accepted;
  if (!own_.decided && message.accepted.round > 0 && (message.decided || counts)) {
    own_.accepted = message.accepted;
    own_.promised = std::max(own_.promised, message.accepted);
    own_.value = message.value;
    own_.decided = message.decided;
  }
}

void Consensus::miss(int rank, double now_s) {
  const auto seat = std::ranges::find(others_, rank, &Seat::rank);
  if (seat == others_.end() || is_present(*seat, now_s)) return;
  seat->is_missed = true;
}

/// One that is there has waited for it in vain, or for a rank of its host, which does not answer.
bool Consensus::is_known_lost(const Seat& seat, const std::vector<Message>& present) const {
  const auto host_of = [&](int rank) {
    const auto found = std::ranges::find(rules_.members, rank);
    return found == rules_.members.end() ? "" : rules_.hosts[size_t(found - rules_.members.begin())];
  };
  const bool host_is_there =
      std::ranges::any_of(present, [&](const Message& message) { return host_of(message.rank) == seat.host; }) ||
      std::ranges::any_of(others_, [&](const Seat& other) { return other.is_missed && other.host == seat.host; });
  return std::ranges::any_of(present, [&](const Message& message) {
    return message.lost == seat.rank || (!host_is_there && host_of(message.lost) == seat.host);
  });
}

bool Consensus::all_reach_each_other(const std::vector<Message>& present) const {
  return std::ranges::all_of(present, [&](const Message& message) {
    return std::ranges::all_of(present, [&](const Message& other) {
      return other.rank == message.rank || contains(message.heard_from, other.rank);
    });
  });
}

/// Nobody is waited for any more.
bool Consensus::is_settled(const std::vector<Message>& present, double now_s) const {
  const bool some_waited = now_s >= last_came_s_ + rules_.report_s;
  const bool all_waited = now_s >= since_s_ + rules_.notice_s;
  for (const Seat& seat : others_) {
    if (is_present(seat, now_s) || seat.is_missed || all_waited) continue;
    if (!some_waited || !is_known_lost(seat, present)) return false;
  }
  return some_waited || all_reach_each_other(present);
}

std::vector<int> Consensus::those_that_go_on(const std::vector<Message>& present) const {
  return those_that_agree(present, present.size() == rules_.members.size());
}

bool Consensus::all_welcome_newcomer(const std::vector<Message>& present) const {
  return rules_.newcomer >= 0 && present.size() == rules_.members.size() &&
         std::ranges::all_of(present, &Message::welcomes);
}

/// Whether a quorum has accepted what this rank has.
void Consensus::learn() {
  if (own_.decided || own_.accepted.round == 0) return;
  std::vector<int> agree{own_.rank};
  for (const Seat& seat : others_)
    if (seat.message && seat.message->accepted == own_.accepted) agree.push_back(seat.rank);
  std::ranges::sort(agree);
  own_.decided = is_quorum(agree, rules_.members);
}

/// Where this rank's attempt has the promises of all that are there: what it proposes is what was accepted before, if
/// anything was.
void Consensus::propose(const std::vector<Message>& present) {
  const bool is_mine = own_.promised.round > 0 && own_.promised.rank == own_.rank;
  if (!is_mine || own_.accepted == own_.promised) return;
  if (!std::ranges::all_of(present, [&](const Message& message) { return message.promised == own_.promised; })) return;
  if (!is_quorum(ranks_of(present), rules_.members)) return;
  const Message& last = *std::ranges::max_element(present, {}, &Message::accepted);
  Proposal value = last.value;
  if (last.accepted.round == 0) {
    value.ranks = those_that_go_on(present);
    const Message& first = *std::ranges::find(present, value.ranks.front(), &Message::rank);
    value.address = first.address;
    value.port = first.port;
    if (value.ranks.size() == present.size() && all_welcome_newcomer(present)) value.ranks.push_back(rules_.newcomer);
  }
  own_.accepted = own_.promised;
  own_.value = std::move(value);
}

/// The lowest rank that is there makes an attempt; so does the next one when that one has gone.
void Consensus::ask_or_propose(const std::vector<Message>& present, double now_s) {
  propose(present);
  const bool is_mine = own_.promised.round > 0 && own_.promised.rank == own_.rank;
  if (is_mine && own_.accepted == own_.promised) return;
  if (own_.promised.round > 0 && now_s < asked_s_ + kAskAgain_s) return;
  asked_s_ = now_s;
  own_.promised = {own_.promised.round + 1, own_.rank};
}

void Consensus::advance(double now_s) {
  own_.heard_from.clear();
  for (const Seat& seat : others_)
    if (is_present(seat, now_s)) own_.heard_from.push_back(seat.rank);
  if (verdict_) return;
  if (own_.done) return conclude(now_s);
  const std::vector<Message> there = present(now_s);
  if (is_settled(there, now_s)) {
    if (const std::string why = why_not(there); !why.empty()) return end(why, now_s);
    if (there.front().rank == own_.rank) ask_or_propose(there, now_s);
  }
  learn();
  if (own_.decided) return conclude(now_s);
  if (now_s >= since_s_ + kMostNotices * rules_.notice_s + rules_.report_s)
    end(fmt::format("rank {} and the others did not agree in time on who goes on", own_.rank), now_s);
}

void Consensus::conclude(double now_s) {
  if (!own_.decided) {
    verdict_ = Verdict{Verdict::Now::done, {}, ""};
  } else if (contains(own_.value.ranks, own_.rank)) {
    verdict_ = Verdict{Verdict::Now::go_on, own_.value, ""};
  } else {
    return end(fmt::format("rank {} was left out: rank {} go{} on without it", own_.rank,
                           index_ranges(own_.value.ranks), own_.value.ranks.size() == 1 ? "es" : ""),
               now_s);
  }
  concluded_s_ = now_s;
}

void Consensus::end(std::string why, double now_s) {
  verdict_ = Verdict{Verdict::Now::end, {}, std::move(why)};
  concluded_s_ = now_s;
}

/// Why those that are there cannot go on; empty where they can.
std::string Consensus::why_not(const std::vector<Message>& present) const {
  const size_t all = rules_.members.size();
  const auto too_few = [&](std::span<const int> left) {
    return fmt::format(
        "rank {} of {} {} left here, and may not go on, because the others may: that takes more than half of the "
        "ranks, or "
        "half of them with rank {}",
        index_ranges(left), all, left.size() == 1 ? "is" : "are", rules_.members.front());
  };
  if (!is_quorum(ranks_of(present), rules_.members)) return too_few(ranks_of(present));
  // What may have been decided already must be found out.
  if (std::ranges::any_of(present, [](const Message& message) { return message.accepted.round > 0; })) return "";
  const std::vector<int> left = those_that_go_on(present);
  if (!is_quorum(left, rules_.members)) return too_few(left);
  if (left.size() == all && rules_.newcomer < 0)
    return fmt::format("rank {} has lost a rank that nobody else misses", own_.rank);
  if (left.size() >= rules_.least) return "";
  return fmt::format("rank {} of {} {} left, and elastic.ranks_lost lets the run go on with {} or more",
                     index_ranges(left), all, left.size() == 1 ? "is" : "are", rules_.least);
}

std::string Consensus::what_became_of(int rank) const {
  if (own_.lost == rank) return own_.cause;
  const auto witness = std::ranges::find_if(
      others_, [&](const Seat& seat) { return seat.rank != rank && seat.message && seat.message->lost == rank; });
  if (witness != others_.end()) return witness->message->cause;
  const auto seat = std::ranges::find(others_, rank, &Seat::rank);
  if (seat != others_.end() && seat->is_missed) return "its process has ended, or no way leads to it";
  return "it did not come when another one was lost";
}

/// Whether all others that need to know this rank's message do, or have had the time.
bool Consensus::may_leave(double now_s) const {
  if (!verdict_) return false;
  if (verdict_->now == Verdict::Now::done)
    return now_s >= concluded_s_ + kDone_s || std::ranges::all_of(others_, [](const Seat& seat) {
             return seat.is_missed || (seat.message && seat.message->done);
           });
  if (verdict_->now == Verdict::Now::end && !own_.decided) return true;
  return now_s >= concluded_s_ + kLinger_s || std::ranges::all_of(others_, [&](const Seat& seat) {
           return !contains(own_.value.ranks, seat.rank) || (seat.message && seat.message->decided);
         });
}

}  // namespace remuda::quorum
