// One consensus alone, and what it makes of the messages of the others: attempts, promises and what was accepted.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quorum/consensus.h"

namespace remuda::quorum {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A consensus of rank `own` of five, of which rank 4 is gone.
Consensus consensus_of(int own, size_t least = 1) {
  ConsensusRules rules{
      .members = {0, 1, 2, 3, 4}, .hosts = {"a", "b", "c", "d", "e"}, .least = least, .notice_s = 1, .report_s = 1};
  Consensus consensus(std::move(rules), {.rank = own, .lost = 4}, 0);
  consensus.miss(4, 0);
  return consensus;
}

Message said_by(int rank, Ballot promised, Ballot accepted = {}, std::vector<int> value = {}) {
  return {.rank = rank,
          .heard_from = {0, 1, 2, 3},
          .promised = promised,
          .accepted = accepted,
          .value = {std::move(value)}};
}

Message decided_by(int rank, Ballot accepted, std::vector<int> value) {
  Message message = said_by(rank, accepted, accepted, std::move(value));
  message.decided = true;
  return message;
}

TEST(Consensus, AMessageOfAnotherGenerationCountsForNothing) {
  Consensus consensus = consensus_of(3);
  Message message = decided_by(0, {1, 0}, {0, 1, 2, 3});
  message.generation = 1;
  consensus.receive(message, 0);
  consensus.advance(0);
  EXPECT_THAT(consensus.message().heard_from, IsEmpty());
  EXPECT_FALSE(consensus.verdict());
  message.generation = 0;
  consensus.receive(message, 0);
  consensus.advance(0);
  EXPECT_TRUE(consensus.verdict());
}

TEST(Consensus, OnlyOneThatIsNotHeardIsMissed) {
  const char* const kLate = "it did not come when another one was lost";
  Consensus consensus = consensus_of(1);
  consensus.receive(said_by(0, {}), 0);
  consensus.miss(0, 1);
  EXPECT_EQ(consensus.what_became_of(0), kLate) << "it was heard a second ago";
  consensus.miss(0, 3);
  EXPECT_EQ(consensus.what_became_of(0), "its process has ended, or no way leads to it");
  consensus.receive(said_by(0, {}), 4);
  EXPECT_EQ(consensus.what_became_of(0), kLate);
}

TEST(Consensus, WhereNobodyAsksAllEndInTheEnd) {
  Consensus consensus = consensus_of(1);
  for (double now_s = 0; now_s < 5 && !consensus.verdict(); now_s += 0.5) {
    for (const int rank : {0, 2, 3}) consensus.receive(said_by(rank, {}), now_s);
    consensus.advance(now_s);
  }
  ASSERT_TRUE(consensus.verdict());
  EXPECT_EQ(consensus.verdict()->now, Verdict::Now::end);
  EXPECT_EQ(consensus.verdict()->why, "rank 1 and the others did not agree in time on who goes on");
}

TEST(Consensus, ProposesOnceAllThatAreThereHavePromised) {
  Consensus consensus = consensus_of(0);
  for (const int rank : {1, 2, 3}) consensus.receive(said_by(rank, {}), 0);
  consensus.advance(0);
  ASSERT_EQ(consensus.message().promised, (Ballot{1, 0}));
  for (const int rank : {1, 2}) consensus.receive(said_by(rank, {1, 0}), 0);
  consensus.advance(0);
  EXPECT_EQ(consensus.message().accepted, Ballot()) << "rank 3 may have accepted what another one has proposed";
  consensus.receive(said_by(3, {1, 0}), 0);
  consensus.advance(0);
  EXPECT_EQ(consensus.message().accepted, (Ballot{1, 0}));
  EXPECT_THAT(consensus.message().value.ranks, ElementsAre(0, 1, 2, 3));
}

TEST(Consensus, WhatOneSaysWithItsPromiseThatItHasAcceptedIsProposed) {
  Consensus consensus = consensus_of(1);
  consensus.miss(0, 0);
  for (const int rank : {2, 3}) consensus.receive(said_by(rank, {}), 0);
  consensus.advance(0);
  ASSERT_EQ(consensus.message().promised, (Ballot{1, 1}));
  consensus.receive(said_by(2, {1, 1}), 0);
  consensus.receive(said_by(3, {1, 1}, {1, 0}, {0, 1, 2, 3}), 0);
  EXPECT_EQ(consensus.message().accepted, Ballot()) << "it has promised not to take that itself";
  consensus.advance(0);
  EXPECT_EQ(consensus.message().accepted, (Ballot{1, 1}));
  EXPECT_THAT(consensus.message().value.ranks, ElementsAre(0, 1, 2, 3));
}

TEST(Consensus, WhatMayHaveBeenDecidedIsFoundOutAlsoByFewerThanMayBeLeft) {
  Consensus consensus = consensus_of(1, 4);
  consensus.miss(0, 0);
  consensus.receive(said_by(2, {1, 0}, {1, 0}, {0, 1, 2, 3}), 0);
  consensus.receive(said_by(3, {1, 0}), 0);
  consensus.advance(0);
  EXPECT_FALSE(consensus.verdict()) << "rank 0 may go on, and wait for the others";
  for (const Ballot accepted : {Ballot{1, 0}, Ballot{2, 1}}) {
    consensus.receive(said_by(2, {2, 1}, accepted, {0, 1, 2, 3}), 2.5);
    consensus.receive(said_by(3, {2, 1}, accepted, {0, 1, 2, 3}), 2.5);
    consensus.advance(2.5);
  }
  ASSERT_TRUE(consensus.verdict());
  EXPECT_EQ(consensus.verdict()->now, Verdict::Now::go_on) << consensus.verdict()->why;
}

TEST(Consensus, WhatIsDecidedCountsAlsoForWhoHasPromisedMore) {
  Consensus consensus = consensus_of(3);
  consensus.receive(said_by(1, {2, 1}), 0);
  consensus.receive(decided_by(0, {1, 0}, {0, 1, 2, 3}), 0);
  consensus.advance(0);
  ASSERT_TRUE(consensus.verdict());
  EXPECT_THAT(consensus.verdict()->value.ranks, ElementsAre(0, 1, 2, 3));
}

TEST(Consensus, WhatIsAcceptedOfAnOlderAttemptDoesNotCountForANewerOne) {
  Consensus consensus = consensus_of(3);
  for (const int rank : {0, 2}) consensus.receive(said_by(rank, {1, 0}, {1, 0}, {0, 1, 2, 3}), 0);
  consensus.receive(said_by(1, {2, 1}, {2, 1}, {1, 2, 3}), 0);
  consensus.advance(0);
  EXPECT_EQ(consensus.message().accepted, (Ballot{2, 1}));
  EXPECT_FALSE(consensus.message().decided) << "two of five have accepted it";
}

TEST(Consensus, WhoHasDecidedStaysUntilTheOthersHave) {
  Consensus consensus = consensus_of(3);
  consensus.receive(decided_by(0, {1, 0}, {0, 1, 2, 3}), 0);
  consensus.advance(0);
  ASSERT_TRUE(consensus.verdict());
  EXPECT_FALSE(consensus.may_leave(0.1));
  EXPECT_TRUE(consensus.may_leave(100)) << "nobody stays forever";
  for (const int rank : {1, 2}) consensus.receive(decided_by(rank, {1, 0}, {0, 1, 2, 3}), 0.1);
  EXPECT_TRUE(consensus.may_leave(0.1));
}

TEST(Consensus, WhatOneHasAcceptedIsProposedAgainWhenItsAuthorIsGone) {
  Consensus consensus = consensus_of(1);
  consensus.miss(0, 0);
  for (const double now_s : {0.0, 2.5, 2.6, 2.7}) {
    const Ballot last = std::max(consensus.message().promised, Ballot{1, 0});
    consensus.receive(said_by(2, last, {1, 0}, {0, 1, 2, 3}), now_s);
    consensus.receive(said_by(3, last), now_s);
    consensus.advance(now_s);
  }
  EXPECT_EQ(consensus.message().accepted, (Ballot{2, 1}));
  EXPECT_THAT(consensus.message().value.ranks, ElementsAre(0, 1, 2, 3)) << "others may have decided it";
}

TEST(Consensus, WhoHasPromisedAcceptsNoOlderAttempt) {
  Consensus consensus = consensus_of(3);
  consensus.receive(said_by(1, {2, 1}), 0);
  consensus.receive(said_by(0, {1, 0}, {1, 0}, {0, 1, 2, 3}), 0);
  EXPECT_EQ(consensus.message().promised, (Ballot{2, 1}));
  EXPECT_EQ(consensus.message().accepted, Ballot());
  consensus.receive(said_by(1, {2, 1}, {2, 1}, {1, 2, 3}), 0);
  EXPECT_EQ(consensus.message().accepted, (Ballot{2, 1}));
}

TEST(Consensus, OnlyWhatAQuorumHasAcceptedIsDecided) {
  Consensus consensus = consensus_of(3);
  const std::vector<int> value{0, 1, 2, 3};
  consensus.receive(said_by(0, {1, 0}, {1, 0}, value), 0);
  consensus.advance(0.1);
  EXPECT_FALSE(consensus.message().decided) << "two of five have accepted it";
  consensus.receive(said_by(2, {1, 0}, {1, 0}, value), 0.1);
  consensus.advance(0.2);
  EXPECT_TRUE(consensus.message().decided);
  ASSERT_TRUE(consensus.verdict());
  EXPECT_EQ(consensus.verdict()->value.ranks, value);
}

}  // namespace
}  // namespace remuda::quorum
