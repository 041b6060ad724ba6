#include "quorum/consensus.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "quorum/testing/world.h"

namespace remuda::quorum {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Now = Verdict::Now;
using testing::World;

TEST(Quorum, IsMoreThanHalfOrHalfWithTheFirst) {
  const std::vector<int> four{1, 2, 5, 7}, three{0, 3, 4};
  EXPECT_TRUE(is_quorum(std::vector{2, 5, 7}, four));
  EXPECT_TRUE(is_quorum(std::vector{1, 7}, four));
  EXPECT_FALSE(is_quorum(std::vector{2, 5}, four));
  EXPECT_TRUE(is_quorum(std::vector{3, 4}, three));
  EXPECT_FALSE(is_quorum(std::vector{0}, three));
  EXPECT_FALSE(is_quorum(std::vector<int>(), three));
}

Message message_of(int rank, std::vector<int> heard_from, int lost = -1) {
  return {.rank = rank, .lost = lost, .heard_from = std::move(heard_from)};
}

TEST(Consensus, WhoDoesNotHearMostOthersIsLeftOut) {
  EXPECT_THAT(those_that_agree({message_of(0, {1, 2}), message_of(1, {0, 2}), message_of(2, {0, 1})}, false),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(those_that_agree({message_of(0, {1}), message_of(1, {0, 2}), message_of(2, {1})}, false),
              ElementsAre(0, 1));
  EXPECT_THAT(those_that_agree({message_of(0, {}), message_of(1, {0, 2}), message_of(2, {0, 1})}, false),
              ElementsAre(1, 2));
}

TEST(Consensus, WhereAllAreThereTheOneThatMostHaveLostIsLeftOut) {
  const std::vector<Message> messages{message_of(0, {1, 2}, 1), message_of(1, {0, 2}, 0), message_of(2, {0, 1}, 1)};
  EXPECT_THAT(those_that_agree(messages, true), ElementsAre(0, 2));
  EXPECT_THAT(those_that_agree(messages, false), ElementsAre(0, 1, 2));
}

// A host answers that the process of one of its ranks has ended. The other one is in the middle of its step.
TEST(Consensus, ARankBesideOneThatWasKilledIsWaitedFor) {
  Consensus consensus({.generation = 0, .members = {0, 1, 2, 3}, .hosts = {"a", "a", "b", "b"}, .least = 3},
                      {.rank = 0, .lost = 2, .address = "a", .port = 1}, 0);
  const auto receive = [&](Message message, double now_s) {
    message.lost = 2;
    message.promised = consensus.message().promised;
    message.accepted = consensus.message().accepted;
    message.value = consensus.message().value;
    consensus.receive(message, now_s);
  };
  for (int tenth = 0; tenth < 100 && !consensus.verdict(); ++tenth) {
    const double now_s = 0.1 * tenth;
    const bool has_come = tenth >= 60;
    consensus.miss(2, now_s);
    receive(message_of(1, has_come ? std::vector{0, 3} : std::vector{0}), now_s);
    if (has_come) receive(message_of(3, {0, 1}), now_s);
    consensus.advance(now_s);
  }
  ASSERT_TRUE(consensus.verdict());
  EXPECT_EQ(consensus.verdict()->now, Now::go_on) << consensus.verdict()->why;
  EXPECT_THAT(consensus.verdict()->value.ranks, ElementsAre(0, 1, 3));
}

TEST(Consensus, WhereOneIsKilledTheOthersGoOnAtOnce) {
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

TEST(Consensus, OfTwoHalvesOneGoesOnAndTheOtherEnds) {
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

TEST(Consensus, WhoHasNotNoticedYetIsWaitedFor) {
  World world(3);
  world.kill(2, 0);
  world.comes(0, 2);
  world.comes(1, 2, 8);
  world.run(15);
  EXPECT_THAT(world.verdict(0).value.ranks, ElementsAre(0, 1));
  EXPECT_GE(world.when(0), 8);
}

TEST(Consensus, WhoDoesNotComeIsLeftOutInTheEnd) {
  World world(3);
  world.comes(0, -1);
  world.comes(1, -1);
  world.comes(2, 0, 21);
  world.run(30);
  EXPECT_THAT(world.verdict(0).value.ranks, ElementsAre(0, 1));
  EXPECT_GE(world.when(0), 20) << "notice_s";
  EXPECT_THAT(world.verdict(2).why, HasSubstr("may not go on, because the others may"));
}

TEST(Consensus, TheNextOneLeadsWhereTheLowestDiesMeanwhile) {
  World world(5);
  world.kill(4, 0);
  for (const int rank : {0, 1, 2, 3}) world.comes(rank, 4, rank == 3 ? 2 : 0);
  world.kill(0, 1);
  world.run(20);
  for (const int rank : {1, 2, 3}) EXPECT_THAT(world.verdict(rank).value.ranks, ElementsAre(1, 2, 3));
}

TEST(Consensus, NobodyGoesOnWithFewerThanMayBeLeft) {
  World world(5, 4);
  world.kill(3, 0);
  world.kill(4, 0);
  for (const int rank : {0, 1, 2}) world.comes(rank, 4);
  world.run(20);
  EXPECT_THAT(world.decisions(), IsEmpty());
  EXPECT_EQ(world.verdict(0).why, "rank 0-2 of 5 are left, and elastic.ranks_lost lets the run go on with 4 or more");
}

TEST(Consensus, WhereOnlyAConnectionIsCutTheLaterRankIsLeftOut) {
  World world(3);
  world.comes(0, 1);
  world.comes(1, 0);
  world.comes(2, 1);
  world.run(20);
  EXPECT_THAT(world.verdict(0).value.ranks, ElementsAre(0, 2));
  EXPECT_THAT(world.verdict(1).why, HasSubstr("was left out"));
}

TEST(Consensus, WhenTheRunIsDoneNobodyGoesOn) {
  World world(3);
  world.are_done(0);
  world.kill(2, 0);
  world.comes(0, 2);
  world.comes(1, 2, 1);
  world.run(20);
  EXPECT_EQ(world.of(0), Now::done);
  EXPECT_EQ(world.of(1), Now::done);
}

TEST(Consensus, ANewcomerGoesOnWithAllWhereAllAreReadyForIt) {
  for (const int members : {1, 2, 3}) {
    SCOPED_TRACE(members);
    World world(members, size_t(members));
    std::vector<int> all, with_it;
    for (int rank = 0; rank <= members; ++rank) (rank < members ? all : with_it).push_back(rank);
    with_it.insert(with_it.begin(), all.begin(), all.end());
    world.is_joined({all.begin(), all.end()});
    for (const int rank : all) world.comes(rank, -1);
    world.run(10);
    EXPECT_EQ(world.decisions(), std::set{with_it});
    EXPECT_LT(world.when(0), 1);
  }
}

TEST(Consensus, ANewcomerForWhichOneIsNotReadyIsLeftOut) {
  World world(3, 3);
  world.is_joined({0, 2});
  for (const int rank : {0, 1, 2}) world.comes(rank, -1);
  world.run(10);
  EXPECT_EQ(world.decisions(), (std::set<std::vector<int>>{{0, 1, 2}}));
}

TEST(Consensus, WhereAConnectionIsCutMeanwhileTheNewcomerIsLeftOut) {
  World world(3, 2);
  world.is_joined({0, 1, 2});
  world.comes(0, 1);
  world.comes(1, 0);
  world.comes(2, -1);
  world.run(10);
  EXPECT_EQ(world.decisions(), (std::set<std::vector<int>>{{0, 2}}));
}

TEST(Consensus, WhereOneIsLostMeanwhileTheNewcomerIsLeftOut) {
  World world(3, 2);
  world.is_joined({0, 1, 2});
  world.kill(1, 0);
  for (const int rank : {0, 2}) world.comes(rank, -1);
  world.run(10);
  EXPECT_EQ(world.decisions(), (std::set<std::vector<int>>{{0, 2}}));
}

// Whatever is lost of what they say, and whenever one dies: either all that go on have the newcomer, or none has.
TEST(Consensus, ANewcomerIsNeverTakenInByHalf) {
  std::mt19937 chance(3);
  for (unsigned seed = 0; seed < 200; ++seed) {
    World world(3, 2);
    world.is_joined(seed % 4 == 0 ? std::set{0, 1} : std::set{0, 1, 2});
    world.lose(0.3, 0.5, seed);
    for (const int rank : {0, 1, 2}) world.comes(rank, -1, 0.5 * (chance() % 4));
    if (seed % 2) world.kill(int(chance() % 3), 0.1 * (chance() % 30));
    world.run(60);
    EXPECT_LE(world.decisions().size(), 1U) << seed;
  }
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
TEST(Consensus, NeverDoTwoHalvesGoOn) {
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
