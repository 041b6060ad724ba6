// One council alone, and what it makes of the words of the others: attempts, promises and what was accepted.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quorum/council.h"

namespace remuda::quorum {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A council of rank `own` of five, of which rank 4 is gone.
Council council_of(int own, size_t least = 1) {
  CouncilRules rules{
      .members = {0, 1, 2, 3, 4}, .hosts = {"a", "b", "c", "d", "e"}, .least = least, .notice_s = 1, .report_s = 1};
  Council council(std::move(rules), {.rank = own, .lost = 4}, 0);
  council.miss(4, 0);
  return council;
}

Word said_by(int rank, Ballot promised, Ballot accepted = {}, std::vector<int> value = {}) {
  return {.rank = rank, .hears = {0, 1, 2, 3}, .promised = promised, .accepted = accepted, .value = {std::move(value)}};
}

Word decided_by(int rank, Ballot accepted, std::vector<int> value) {
  Word word = said_by(rank, accepted, accepted, std::move(value));
  word.decided = true;
  return word;
}

TEST(Council, AWordOfAnotherGenerationCountsForNothing) {
  Council council = council_of(3);
  Word word = decided_by(0, {1, 0}, {0, 1, 2, 3});
  word.generation = 1;
  council.hear(word, 0);
  council.advance(0);
  EXPECT_THAT(council.word().hears, IsEmpty());
  EXPECT_FALSE(council.verdict());
  word.generation = 0;
  council.hear(word, 0);
  council.advance(0);
  EXPECT_TRUE(council.verdict());
}

TEST(Council, OnlyOneThatIsNotHeardIsMissed) {
  const char* const kLate = "it did not come when another one was lost";
  Council council = council_of(1);
  council.hear(said_by(0, {}), 0);
  council.miss(0, 1);
  EXPECT_EQ(council.what_became_of(0), kLate) << "it was heard a second ago";
  council.miss(0, 3);
  EXPECT_EQ(council.what_became_of(0), "its process has ended, or no way leads to it");
  council.hear(said_by(0, {}), 4);
  EXPECT_EQ(council.what_became_of(0), kLate);
}

TEST(Council, WhereNobodyAsksAllEndInTheEnd) {
  Council council = council_of(1);
  for (double now_s = 0; now_s < 5 && !council.verdict(); now_s += 0.5) {
    for (const int rank : {0, 2, 3}) council.hear(said_by(rank, {}), now_s);
    council.advance(now_s);
  }
  ASSERT_TRUE(council.verdict());
  EXPECT_EQ(council.verdict()->now, Verdict::Now::end);
  EXPECT_EQ(council.verdict()->why, "rank 1 and the others did not agree in time on who goes on");
}

TEST(Council, ProposesOnceAllThatAreThereHavePromised) {
  Council council = council_of(0);
  for (const int rank : {1, 2, 3}) council.hear(said_by(rank, {}), 0);
  council.advance(0);
  ASSERT_EQ(council.word().promised, (Ballot{1, 0}));
  for (const int rank : {1, 2}) council.hear(said_by(rank, {1, 0}), 0);
  council.advance(0);
  EXPECT_EQ(council.word().accepted, Ballot()) << "rank 3 may have accepted what another one has proposed";
  council.hear(said_by(3, {1, 0}), 0);
  council.advance(0);
  EXPECT_EQ(council.word().accepted, (Ballot{1, 0}));
  EXPECT_THAT(council.word().value.ranks, ElementsAre(0, 1, 2, 3));
}

TEST(Council, WhatOneSaysWithItsPromiseThatItHasAcceptedIsProposed) {
  Council council = council_of(1);
  council.miss(0, 0);
  for (const int rank : {2, 3}) council.hear(said_by(rank, {}), 0);
  council.advance(0);
  ASSERT_EQ(council.word().promised, (Ballot{1, 1}));
  council.hear(said_by(2, {1, 1}), 0);
  council.hear(said_by(3, {1, 1}, {1, 0}, {0, 1, 2, 3}), 0);
  EXPECT_EQ(council.word().accepted, Ballot()) << "it has promised not to take that itself";
  council.advance(0);
  EXPECT_EQ(council.word().accepted, (Ballot{1, 1}));
  EXPECT_THAT(council.word().value.ranks, ElementsAre(0, 1, 2, 3));
}

TEST(Council, WhatMayHaveBeenDecidedIsFoundOutAlsoByFewerThanMayBeLeft) {
  Council council = council_of(1, 4);
  council.miss(0, 0);
  council.hear(said_by(2, {1, 0}, {1, 0}, {0, 1, 2, 3}), 0);
  council.hear(said_by(3, {1, 0}), 0);
  council.advance(0);
  EXPECT_FALSE(council.verdict()) << "rank 0 may go on, and wait for the others";
  for (const Ballot accepted : {Ballot{1, 0}, Ballot{2, 1}}) {
    council.hear(said_by(2, {2, 1}, accepted, {0, 1, 2, 3}), 2.5);
    council.hear(said_by(3, {2, 1}, accepted, {0, 1, 2, 3}), 2.5);
    council.advance(2.5);
  }
  ASSERT_TRUE(council.verdict());
  EXPECT_EQ(council.verdict()->now, Verdict::Now::go_on) << council.verdict()->why;
}

TEST(Council, WhatIsDecidedCountsAlsoForWhoHasPromisedMore) {
  Council council = council_of(3);
  council.hear(said_by(1, {2, 1}), 0);
  council.hear(decided_by(0, {1, 0}, {0, 1, 2, 3}), 0);
  council.advance(0);
  ASSERT_TRUE(council.verdict());
  EXPECT_THAT(council.verdict()->value.ranks, ElementsAre(0, 1, 2, 3));
}

TEST(Council, WhatIsAcceptedOfAnOlderAttemptDoesNotCountForANewerOne) {
  Council council = council_of(3);
  for (const int rank : {0, 2}) council.hear(said_by(rank, {1, 0}, {1, 0}, {0, 1, 2, 3}), 0);
  council.hear(said_by(1, {2, 1}, {2, 1}, {1, 2, 3}), 0);
  council.advance(0);
  EXPECT_EQ(council.word().accepted, (Ballot{2, 1}));
  EXPECT_FALSE(council.word().decided) << "two of five have accepted it";
}

TEST(Council, WhoHasDecidedStaysUntilTheOthersHave) {
  Council council = council_of(3);
  council.hear(decided_by(0, {1, 0}, {0, 1, 2, 3}), 0);
  council.advance(0);
  ASSERT_TRUE(council.verdict());
  EXPECT_FALSE(council.may_leave(0.1));
  EXPECT_TRUE(council.may_leave(100)) << "nobody stays forever";
  for (const int rank : {1, 2}) council.hear(decided_by(rank, {1, 0}, {0, 1, 2, 3}), 0.1);
  EXPECT_TRUE(council.may_leave(0.1));
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

}  // namespace
}  // namespace remuda::quorum
