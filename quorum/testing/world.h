// Tests only: participants of several ranks, without a network and without time.
#pragma once

#include <fmt/format.h>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "quorum/consensus.h"

namespace remuda::quorum::testing {

/// Ranks, and the network between them, all made of numbers.
class World {
 public:
  explicit World(int ranks, size_t least = 1, int ranks_of_a_host = 1) : least_(least), per_host_(ranks_of_a_host) {
    for (int rank = 0; rank < ranks; ++rank) members_.push_back(rank);
  }

  /// It has lost `lost`, and comes at this time.
  void comes(int rank, int lost, double at_s = 0) { comes_.push_back({rank, lost, at_s}); }
  void kill(int rank, double at_s) { killed_[rank] = at_s; }
  /// What one says does not reach the other meanwhile; nobody tells them so.
  void cut(int from, int to, double at_s = 0, double until_s = 1e9) { cuts_.push_back({from, to, at_s, until_s}); }
  void cut_both(int a, int b) {
    cut(a, b);
    cut(b, a);
  }
  /// So many of the messages, and the others are as late as that at most.
  void lose(double part, double late_s, unsigned seed) {
    lost_part_ = part;
    late_s_ = late_s;
    chance_.seed(seed);
  }
  /// Hardly anybody is waited for.
  void hurry() {
    notice_s_ = 2;
    report_s_ = 0.2;
  }
  void are_done(int rank) { done_.insert(rank); }
  /// The next number is that of one that joins; these are ready to go on with it.
  void is_joined(std::set<int> welcoming) { welcoming_ = std::move(welcoming); }

  void run(double seconds) {
    for (now_s_ = 0; now_s_ < seconds; now_s_ += kTick_s) {
      for (const auto& one : comes_)
        if (one.at_s <= now_s_ && !participants_.contains(one.rank) && !left_.contains(one.rank)) enter(one);
      for (auto& [rank, consensus] : participants_) {
        consensus->advance(now_s_);
        note(rank, *consensus);
        for (const int to : members_)
          if (to != rank) say(consensus->message(), to);
      }
      std::erase_if(participants_, [&](const auto& one) {
        const bool leaves = one.second->may_leave(now_s_) || is_dead(one.first);
        if (leaves) left_.insert(one.first);
        return leaves;
      });
      deliver();
    }
  }

  Verdict::Now of(int rank) const { return verdicts_.at(rank).now; }
  const Verdict& verdict(int rank) const { return verdicts_.at(rank); }
  bool has_verdict(int rank) const { return verdicts_.contains(rank); }
  double when(int rank) const { return when_.at(rank); }
  /// What some go on with: each kind once.
  std::set<std::vector<int>> decisions() const {
    std::set<std::vector<int>> all;
    for (const auto& [rank, verdict] : verdicts_)
      if (verdict.now == Verdict::Now::go_on) all.insert(verdict.value.ranks);
    return all;
  }

 private:
  static constexpr double kTick_s = 0.1;
  struct Coming {
    int rank, lost;
    double at_s;
  };
  struct Cut {
    int from, to;
    double at_s, until_s;
  };
  bool is_dead(int rank) const { return killed_.contains(rank) && killed_.at(rank) <= now_s_; }
  void enter(const Coming& one) {
    if (is_dead(one.rank)) return;
    ConsensusRules rules{
        .generation = 1, .members = members_, .least = least_, .notice_s = notice_s_, .report_s = report_s_};
    for (const int rank : members_) rules.hosts.push_back(fmt::format("host {}", rank / per_host_));
    if (welcoming_) rules.newcomer = int(members_.size());
    Message own{.rank = one.rank,
                .lost = one.lost,
                .done = done_.contains(one.rank),
                .welcomes = welcoming_ && welcoming_->contains(one.rank),
                .address = "a",
                .port = 1 + one.rank};
    participants_[one.rank] = std::make_unique<Consensus>(std::move(rules), std::move(own), now_s_);
  }
  void note(int rank, const Consensus& consensus) {
    if (!consensus.verdict() || verdicts_.contains(rank)) return;
    verdicts_[rank] = *consensus.verdict();
    when_[rank] = now_s_;
  }
  void say(const Message& message, int to) {
    for (const Cut& cut : cuts_)
      if (cut.from == message.rank && cut.to == to && cut.at_s <= now_s_ && now_s_ < cut.until_s) return;
    if (std::uniform_real_distribution<>()(chance_) < lost_part_) return;
    if ((is_dead(to) || left_.contains(to)) && participants_.contains(message.rank))
      refused_.emplace_back(message.rank, to);
    const double delay_s = std::uniform_real_distribution<>(0, late_s_)(chance_);
    under_way_.emplace(now_s_ + delay_s, std::pair(to, message));
  }
  void deliver() {
    while (!under_way_.empty() && under_way_.begin()->first <= now_s_) {
      const auto [to, message] = under_way_.begin()->second;
      under_way_.erase(under_way_.begin());
      if (participants_.contains(to)) participants_[to]->receive(message, now_s_);
    }
    for (const auto& [from, to] : refused_)
      if (participants_.contains(from)) participants_[from]->miss(to, now_s_);
    refused_.clear();
  }

  std::vector<int> members_;
  size_t least_;
  int per_host_;
  std::vector<Coming> comes_;
  std::map<int, double> killed_;
  std::vector<Cut> cuts_;
  std::set<int> left_, done_;
  std::optional<std::set<int>> welcoming_;
  double lost_part_ = 0, late_s_ = 0, notice_s_ = 20, report_s_ = 1;
  std::mt19937 chance_;
  std::map<int, std::unique_ptr<Consensus>> participants_;
  std::multimap<double, std::pair<int, Message>> under_way_;
  std::vector<std::pair<int, int>> refused_;
  std::map<int, Verdict> verdicts_;
  std::map<int, double> when_;
  double now_s_ = 0;
};

}  // namespace remuda::quorum::testing
