#include "quorum/council.h"

#include <fmt/format.h>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace remuda::quorum {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Now = Verdict::Now;

TEST(Quorum, IsMoreThanHalfOrHalfWithTheFirst) {
  const std::vector<int> four{1, 2, 5, 7}, three{0, 3, 4};
  EXPECT_TRUE(is_quorum(std::vector{2, 5, 7}, four));
  EXPECT_TRUE(is_quorum(std::vector{1, 7}, four));
  EXPECT_FALSE(is_quorum(std::vector{2, 5}, four));
  EXPECT_TRUE(is_quorum(std::vector{3, 4}, three));
  EXPECT_FALSE(is_quorum(std::vector{0}, three));
  EXPECT_FALSE(is_quorum(std::vector<int>(), three));
}

Word word_of(int rank, std::vector<int> hears, int lost = -1) {
  return {.rank = rank, .lost = lost, .hears = std::move(hears)};
}

TEST(Council, WhoDoesNotHearMostOthersIsLeftOut) {
  EXPECT_THAT(those_that_agree({word_of(0, {1, 2}), word_of(1, {0, 2}), word_of(2, {0, 1})}, false),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(those_that_agree({word_of(0, {1}), word_of(1, {0, 2}), word_of(2, {1})}, false), ElementsAre(0, 1));
  EXPECT_THAT(those_that_agree({word_of(0, {}), word_of(1, {0, 2}), word_of(2, {0, 1})}, false), ElementsAre(1, 2));
}

TEST(Council, WhereAllAreThereTheOneThatMostHaveLostIsLeftOut) {
  const std::vector<Word> words{word_of(0, {1, 2}, 1), word_of(1, {0, 2}, 0), word_of(2, {0, 1}, 1)};
  EXPECT_THAT(those_that_agree(words, true), ElementsAre(0, 2));
  EXPECT_THAT(those_that_agree(words, false), ElementsAre(0, 1, 2));
}

// A host answers that the process of one of its ranks has ended. The other one is in the middle of its step.
TEST(Council, ARankBesideOneThatWasKilledIsWaitedFor) {
  Council council({.generation = 0, .members = {0, 1, 2, 3}, .hosts = {"a", "a", "b", "b"}, .least = 3},
                  {.rank = 0, .lost = 2, .address = "a", .port = 1}, 0);
  const auto hear = [&](Word word, double now_s) {
    word.lost = 2;
    word.promised = council.word().promised;
    word.accepted = council.word().accepted;
    word.value = council.word().value;
    council.hear(word, now_s);
  };
  for (int tenth = 0; tenth < 100 && !council.verdict(); ++tenth) {
    const double now_s = 0.1 * tenth;
    const bool has_come = tenth >= 60;
    council.miss(2, now_s);
    hear(word_of(1, has_come ? std::vector{0, 3} : std::vector{0}), now_s);
    if (has_come) hear(word_of(3, {0, 1}), now_s);
    council.advance(now_s);
  }
  ASSERT_TRUE(council.verdict());
  EXPECT_EQ(council.verdict()->now, Now::go_on) << council.verdict()->why;
  EXPECT_THAT(council.verdict()->value.ranks, ElementsAre(0, 1, 3));
}

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
  /// So many of the words, and the others are as late as that at most.
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

  void run(double seconds) {
    for (now_s_ = 0; now_s_ < seconds; now_s_ += kTick_s) {
      for (const auto& one : comes_)
        if (one.at_s <= now_s_ && !councils_.contains(one.rank) && !left_.contains(one.rank)) enter(one);
      for (auto& [rank, council] : councils_) {
        council->advance(now_s_);
        note(rank, *council);
        for (const int to : members_)
          if (to != rank) say(council->word(), to);
      }
      std::erase_if(councils_, [&](const auto& one) {
        const bool leaves = one.second->may_leave(now_s_) || is_dead(one.first);
        if (leaves) left_.insert(one.first);
        return leaves;
      });
      deliver();
    }
  }

  Now of(int rank) const { return verdicts_.at(rank).now; }
  const Verdict& verdict(int rank) const { return verdicts_.at(rank); }
  bool has_verdict(int rank) const { return verdicts_.contains(rank); }
  double when(int rank) const { return when_.at(rank); }
  /// What some go on with: each kind once.
  std::set<std::vector<int>> decisions() const {
    std::set<std::vector<int>> all;
    for (const auto& [rank, verdict] : verdicts_)
      if (verdict.now == Now::go_on) all.insert(verdict.value.ranks);
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
    CouncilRules rules{
        .generation = 1, .members = members_, .least = least_, .notice_s = notice_s_, .report_s = report_s_};
    for (const int rank : members_) rules.hosts.push_back(fmt::format("host {}", rank / per_host_));
    Word own{
        .rank = one.rank, .lost = one.lost, .done = done_.contains(one.rank), .address = "a", .port = 1 + one.rank};
    councils_[one.rank] = std::make_unique<Council>(std::move(rules), std::move(own), now_s_);
  }
  void note(int rank, const Council& council) {
    if (!council.verdict() || verdicts_.contains(rank)) return;
    verdicts_[rank] = *council.verdict();
    when_[rank] = now_s_;
  }
  void say(const Word& word, int to) {
    for (const Cut& cut : cuts_)
      if (cut.from == word.rank && cut.to == to && cut.at_s <= now_s_ && now_s_ < cut.until_s) return;
    if (std::uniform_real_distribution<>()(chance_) < lost_part_) return;
    if ((is_dead(to) || left_.contains(to)) && councils_.contains(word.rank)) refused_.emplace_back(word.rank, to);
    const double delay_s = std::uniform_real_distribution<>(0, late_s_)(chance_);
    under_way_.emplace(now_s_ + delay_s, std::pair(to, word));
  }
  void deliver() {
    while (!under_way_.empty() && under_way_.begin()->first <= now_s_) {
      const auto [to, word] = under_way_.begin()->second;
      under_way_.erase(under_way_.begin());
      if (councils_.contains(to)) councils_[to]->hear(word, now_s_);
    }
    for (const auto& [from, to] : refused_)
      if (councils_.contains(from)) councils_[from]->miss(to, now_s_);
    refused_.clear();
  }

  std::vector<int> members_;
  size_t least_;
  int per_host_;
  std::vector<Coming> comes_;
  std::map<int, double> killed_;
  std::vector<Cut> cuts_;
  std::set<int> left_, done_;
  double lost_part_ = 0, late_s_ = 0, notice_s_ = 20, report_s_ = 1;
  std::mt19937 chance_;
  std::map<int, std::unique_ptr<Council>> councils_;
  std::multimap<double, std::pair<int, Word>> under_way_;
  std::vector<std::pair<int, int>> refused_;
  std::map<int, Verdict> verdicts_;
  std::map<int, double> when_;
  double now_s_ = 0;
};

TEST(Council, WhereOneIsKilledTheOthersGoOnAtOnce) {
  for (const int dead : {0, 1, 2}) {
    SCOPED_TRACE(dead);
    World world(3);
    std::vector<int> left;
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == dead) continue;
      left.push_back(rank);
      world.comes(rank, dead);
    }
    world.kill(dead, 0);
    world.run(10);
    for (const int rank : left) {
      EXPECT_EQ(world.of(rank), Now::go_on);
      EXPECT_EQ(world.verdict(rank).value.ranks, left);
      EXPECT_EQ(world.verdict(rank).value.port, 1 + left.front()) << "they meet where the first of them is";
      EXPECT_LT(world.when(rank), 1);
    }
  }
}

TEST(Council, OfTwoHalvesOneGoesOnAndTheOtherEnds) {
  World world(4, 2, 2);
  for (const int a : {0, 1})
    for (const int b : {2, 3}) world.cut_both(a, b);
  for (const int rank : {0, 1}) world.comes(rank, 2);
  for (const int rank : {2, 3}) world.comes(rank, 0);
  world.run(10);
  for (const int rank : {0, 1}) EXPECT_THAT(world.verdict(rank).value.ranks, ElementsAre(0, 1));
  for (const int rank : {2, 3}) {
    EXPECT_EQ(world.of(rank), Now::end);
    EXPECT_EQ(
        world.verdict(rank).why,
        "rank 2-3 of 4 are left here, and may not go on, because the others may: that takes more than half of the "
        "ranks, or half of them with rank 0");
    EXPECT_LT(world.when(rank), 3) << "no rank of the other host is waited for, though only one of them is named";
  }
}

TEST(Council, WhoHasNotNoticedYetIsWaitedFor) {
  World world(3);
  world.kill(2, 0);
  world.comes(0, 2);
  world.comes(1, 2, 8);
  world.run(15);
  EXPECT_THAT(world.verdict(0).value.ranks, ElementsAre(0, 1));
  EXPECT_GE(world.when(0), 8);
}

TEST(Council, WhoDoesNotComeIsLeftOutInTheEnd) {
  World world(3);
  world.comes(0, -1);
  world.comes(1, -1);
  world.comes(2, 0, 21);
  world.run(30);
  EXPECT_THAT(world.verdict(0).value.ranks, ElementsAre(0, 1));
  EXPECT_GE(world.when(0), 20) << "notice_s";
  EXPECT_THAT(world.verdict(2).why, HasSubstr("may not go on, because the others may"));
}

TEST(Council, TheNextOneLeadsWhereTheLowestDiesMeanwhile) {
  World world(5);
  world.kill(4, 0);
  for (const int rank : {0, 1, 2, 3}) world.comes(rank, 4, rank == 3 ? 2 : 0);
  world.kill(0, 1);
  world.run(20);
  for (const int rank : {1, 2, 3}) EXPECT_THAT(world.verdict(rank).value.ranks, ElementsAre(1, 2, 3));
}

TEST(Council, NobodyGoesOnWithFewerThanMayBeLeft) {
  World world(5, 4);
  world.kill(3, 0);
  world.kill(4, 0);
  for (const int rank : {0, 1, 2}) world.comes(rank, 4);
  world.run(20);
  EXPECT_THAT(world.decisions(), IsEmpty());
  EXPECT_EQ(world.verdict(0).why, "rank 0-2 of 5 are left, and elastic.ranks_lost lets the run go on with 4 or more");
}

TEST(Council, WhereOnlyAConnectionIsCutTheLaterRankIsLeftOut) {
  World world(3);
  world.comes(0, 1);
  world.comes(1, 0);
  world.comes(2, 1);
  world.run(20);
  EXPECT_THAT(world.verdict(0).value.ranks, ElementsAre(0, 2));
  EXPECT_THAT(world.verdict(1).why, HasSubstr("was left out"));
}

TEST(Council, WhenTheRunIsDoneNobodyGoesOn) {
  World world(3);
  world.are_done(0);
  world.kill(2, 0);
  world.comes(0, 2);
  world.comes(1, 2, 1);
  world.run(20);
  EXPECT_EQ(world.of(0), Now::done);
  EXPECT_EQ(world.of(1), Now::done);
}

/// A council of rank `own` of five, of which rank 4 is gone.
Council council_of(int own) {
  CouncilRules rules{.members = {0, 1, 2, 3, 4}, .hosts = {"a", "b", "c", "d", "e"}, .notice_s = 1, .report_s = 1};
  Council council(std::move(rules), {.rank = own, .lost = 4}, 0);
  council.miss(4, 0);
  return council;
}

Word said_by(int rank, Ballot promised, Ballot accepted = {}, std::vector<int> value = {}) {
  return {.rank = rank, .hears = {0, 1, 2, 3}, .promised = promised, .accepted = accepted, .value = {std::move(value)}};
}

TEST(Council, WhatOneHasAcceptedIsProposedAgainWhenItsAuthorIsGone) {
  Council council = council_of(1);
  council.miss(0, 0);
  for (const double now_s : {0.0, 2.5, 2.6, 2.7}) {
    const Ballot last = std::max(council.word().promised, Ballot{1, 0});
    council.hear(said_by(2, last, {1, 0}, {0, 1, 2, 3}), now_s);
    council.hear(said_by(3, last), now_s);
    council.advance(now_s);
  }
  EXPECT_EQ(council.word().accepted, (Ballot{2, 1}));
  EXPECT_THAT(council.word().value.ranks, ElementsAre(0, 1, 2, 3)) << "others may have decided it";
}

TEST(Council, WhoHasPromisedAcceptsNoOlderAttempt) {
  Council council = council_of(3);
  council.hear(said_by(1, {2, 1}), 0);
  council.hear(said_by(0, {1, 0}, {1, 0}, {0, 1, 2, 3}), 0);
  EXPECT_EQ(council.word().promised, (Ballot{2, 1}));
  EXPECT_EQ(council.word().accepted, Ballot());
  council.hear(said_by(1, {2, 1}, {2, 1}, {1, 2, 3}), 0);
  EXPECT_EQ(council.word().accepted, (Ballot{2, 1}));
}

TEST(Council, OnlyWhatAQuorumHasAcceptedIsDecided) {
  Council council = council_of(3);
  const std::vector<int> value{0, 1, 2, 3};
  council.hear(said_by(0, {1, 0}, {1, 0}, value), 0);
  council.advance(0.1);
  EXPECT_FALSE(council.word().decided) << "two of five have accepted it";
  council.hear(said_by(2, {1, 0}, {1, 0}, value), 0.1);
  council.advance(0.2);
  EXPECT_TRUE(council.word().decided);
  ASSERT_TRUE(council.verdict());
  EXPECT_EQ(council.verdict()->value.ranks, value);
}

/// Parts the ranks in two for some time, again and again, each time in another way; some cables go one way only.
void part_at_random(World& world, int ranks, std::mt19937& chance) {
  std::uniform_real_distribution<> length_s(0, 3);
  double at_s = length_s(chance);
  for (int times = int(chance() % 8); times > 0; --times) {
    const double until_s = times == 1 && chance() % 2 ? 1e9 : at_s + length_s(chance);
    const unsigned side = unsigned(chance());
    for (int from = 0; from < ranks; ++from)
      for (int to = 0; to < ranks; ++to)
        if ((side >> from & 1) != (side >> to & 1) || chance() % 12 == 0) world.cut(from, to, at_s, until_s);
    at_s = until_s + length_s(chance) / 4;
  }
}

/// Whatever is lost, late, cut or killed, and when: all that go on go on together.
TEST(Council, NeverDoTwoHalvesGoOn) {
  int went_on = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 chance(seed);
    const auto any = [&](int below) { return int(chance() % unsigned(below)); };
    const auto moment = [&] { return std::uniform_real_distribution<>(0, 6)(chance); };
    const int ranks = 2 + any(6);
    World world(ranks, 1, 1 + any(2));
    world.lose(0.2 * any(5), 0.4 * any(5), seed);
    if (any(4) > 0) world.hurry();
    for (int rank = 0; rank < ranks; ++rank) {
      world.comes(rank, any(ranks + 1) - 1, any(2) ? 0 : moment());
      if (any(6) == 0) world.kill(rank, moment());
    }
    part_at_random(world, ranks, chance);
    world.run(60);
    const auto decisions = world.decisions();
    ASSERT_LE(decisions.size(), 1U);
    went_on += int(decisions.size());
    for (int rank = 0; rank < ranks; ++rank) {
      if (!world.has_verdict(rank)) continue;
      const Verdict& verdict = world.verdict(rank);
      const bool is_of_them = std::ranges::find(verdict.value.ranks, rank) != verdict.value.ranks.end();
      EXPECT_EQ(verdict.now == Now::go_on, is_of_them);
      EXPECT_EQ(verdict.now == Now::end, !verdict.why.empty());
    }
  }
  EXPECT_GT(went_on, 200) << "else this shows nothing";
}

}  // namespace
}  // namespace remuda::quorum
