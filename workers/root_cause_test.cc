#include "workers/root_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace remuda::workers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr process::ExitState kFine{}, kStatusOne{1, 0}, kKilled{0, 9}, kTerminated{0, 15};

RankFacts rank_of(int rank) { return {.rank = rank, .device = "cpu:" + std::to_string(rank)}; }

RankFacts ended(int rank, process::ExitState exit, double at_s) {
  RankFacts facts = rank_of(rank);
  facts.exit = exit;
  facts.failed_at_s = at_s;
  return facts;
}

RankFacts reported(int rank, ErrorKind kind, const std::string& message, double at_s, int peer = -1) {
  RankFacts facts = ended(rank, kStatusOne, at_s);
  facts.error = Error{kind, message, peer};
  return facts;
}

RankFacts finished(int rank) {
  RankFacts facts = ended(rank, kFine, 0);
  facts.done = true;
  return facts;
}

TEST(RootCause, IsNoneWhenAllAreDone) {
  EXPECT_FALSE(root_cause(std::vector{finished(0), finished(1)}, false));
  EXPECT_FALSE(root_cause(std::vector{rank_of(0)}, false));
}

TEST(RootCause, ADeathComesBeforeTheLostPeersItCauses) {
  const auto lost = reported(0, ErrorKind::lost_peer, "rank 1 went away", 1.0, 1);
  const auto failure = root_cause(std::vector{lost, ended(1, kKilled, 2.0)}, false);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->device, "cpu:1");
  EXPECT_EQ(failure->cause, "killed by signal 9 (Killed)");
}

TEST(RootCause, AnErrorOfItsOwnComesBeforeLostPeersAndKeepsItsKind) {
  const auto lost = reported(0, ErrorKind::lost_peer, "rank 2 went away", 1.0, 2);
  const auto own = reported(2, ErrorKind::usage, "bad file", 3.0);
  const auto failure = root_cause(std::vector{lost, finished(1), own}, false);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 2);
  EXPECT_EQ(failure->cause, "bad file");
  EXPECT_EQ(failure->kind, ErrorKind::usage);
}

TEST(RootCause, AmongEqualsTheEarliest) {
  const auto failure = root_cause(std::vector{ended(0, kStatusOne, 2.0), ended(1, kKilled, 1.0)}, false);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
}

TEST(RootCause, ThePeerThatWentSilentIsToBlame) {
  RankFacts frozen = ended(1, kTerminated, 5.0);
  frozen.signalled = true;
  const auto lost = reported(0, ErrorKind::lost_peer, "no word from rank 1 for 300 s", 1.0, 1);
  const auto failure = root_cause(std::vector{lost, frozen}, false);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_THAT(failure->cause, HasSubstr("no word from rank 1 for 300 s"));
}

TEST(RootCause, RanksThatAccuseEachOtherGiveTheFirst) {
  const auto failure = root_cause(std::vector{reported(0, ErrorKind::lost_peer, "lost 1", 2.0, 1),
                                              reported(1, ErrorKind::lost_peer, "lost 0", 1.0, 0)},
                                  false);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->cause, "lost 0");
}

TEST(RootCause, ALostPeerThatIsNoRankBlamesTheWitness) {
  const auto failure = root_cause(std::vector{reported(0, ErrorKind::lost_peer, "lost 7", 1.0, 7)}, false);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 0);
}

TEST(RootCause, EndingWellWithoutBeingDoneIsAFailure) {
  const auto failure = root_cause(std::vector{finished(0), ended(1, kFine, 1.0)}, false);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->cause, "ended before its work was done");
}

TEST(RootCause, DyingAfterBeingDoneIsNoFailure) {
  RankFacts crashed = finished(0);
  crashed.exit = process::ExitState{0, 11};
  EXPECT_FALSE(root_cause(std::vector{crashed}, false));
}

TEST(RootCause, OfAFirstRankThatHasTrainedNoOtherIsTheCause) {
  RankFacts first = reported(0, ErrorKind::failed, "disk full", 2.0);
  const RankFacts other = ended(1, kKilled, 1.0);
  EXPECT_EQ(root_cause(std::vector{first, other}, false)->rank, 1);
  first.trained = true;
  EXPECT_EQ(root_cause(std::vector{first, other}, false)->cause, "disk full");
}

TEST(RootCause, NothingIsAFailureOnceTheRunHasReported) {
  RankFacts reporter = finished(0);
  const std::vector<RankFacts> others{ended(1, kKilled, 1.0), reported(2, ErrorKind::failed, "no device", 1.0)};
  std::vector<RankFacts> all{reporter, others[0], others[1]};
  EXPECT_TRUE(root_cause(all, false));
  all[0].reported = true;
  EXPECT_FALSE(root_cause(all, false));
}

TEST(RootCause, AfterAStopOnlyErrorsOfTheirOwnCount) {
  const auto lost = reported(0, ErrorKind::lost_peer, "rank 1 went away", 1.0, 1);
  EXPECT_FALSE(root_cause(std::vector{lost, ended(1, kTerminated, 1.0)}, true));
  const auto own = reported(1, ErrorKind::failed, "disk full", 2.0);
  const auto failure = root_cause(std::vector{lost, own}, true);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->cause, "disk full");
}

TEST(RootCause, BringsTheLastOutputAlong) {
  RankFacts crashed = ended(0, kKilled, 1.0);
  crashed.last_output = {"terminate called"};
  EXPECT_THAT(root_cause(std::vector{crashed}, false)->last_output, ElementsAre("terminate called"));
}

}  // namespace
}  // namespace remuda::workers
