#include "workers/regroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::workers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Now = Regrouping::Now;

constexpr double kNotice_s = 100, kReport_s = 1;

RankFacts at_work(int rank) { return {.rank = rank, .device = "cpu:" + std::to_string(rank), .ready = true}; }

RankFacts killed(int rank, double at_s = 10) {
  RankFacts facts = at_work(rank);
  facts.exit = process::ExitState{0, 9};
  facts.failed_at_s = at_s;
  return facts;
}

RankFacts without(int rank, int peer, double at_s = 10) {
  RankFacts facts = at_work(rank);
  facts.error = Error{ErrorKind::lost_peer, "rank " + std::to_string(peer) + " did not answer", peer};
  facts.waits = true;
  facts.failed_at_s = at_s;
  return facts;
}

RankFacts failed_with(int rank, ErrorKind kind) {
  RankFacts facts = at_work(rank);
  facts.error = Error{kind, "its own", -1};
  facts.failed_at_s = 10;
  return facts;
}

Regrouping after(const std::vector<RankFacts>& ranks, double now_s = 10, int may_be_lost = 1) {
  return regroup(ranks, may_be_lost, now_s, kNotice_s, kReport_s);
}

std::vector<int> lost(const Regrouping& regrouping) {
  std::vector<int> ranks;
  for (const Failure& one : regrouping.lost) ranks.push_back(one.rank);
  return ranks;
}

TEST(Regroup, NothingIsToBeDoneWhileAllWork) { EXPECT_EQ(after({at_work(0), at_work(1)}).now, Now::work); }

TEST(Regroup, ThoseThatAreLeftMeetOnceAllHaveNoticed) {
  EXPECT_EQ(after({killed(0), at_work(1), without(2, 0)}, 50).now, Now::wait);
  const Regrouping all = after({killed(0), without(1, 0), without(2, 0)});
  EXPECT_EQ(all.now, Now::meet);
  EXPECT_THAT(lost(all), ElementsAre(0));
  EXPECT_EQ(all.lost[0].cause, "killed by signal 9 (Killed)");
}

TEST(Regroup, ARankWithAnErrorOfItsOwnIsLostBeforeItHasEnded) {
  const Regrouping all = after({without(0, 1), failed_with(1, ErrorKind::failed)});
  EXPECT_EQ(all.now, Now::meet);
  EXPECT_THAT(lost(all), ElementsAre(1));
  EXPECT_EQ(all.lost[0].cause, "its own");
}

TEST(Regroup, TheRankThatAllWaitedForIsLost) {
  const std::vector<RankFacts> ranks{without(0, 1), at_work(1), without(2, 1, 12)};
  EXPECT_EQ(after(ranks, 12.5).now, Now::wait) << "it may be about to say something";
  const Regrouping later = after(ranks, 13);
  EXPECT_EQ(later.now, Now::meet);
  EXPECT_THAT(lost(later), ElementsAre(1));
  EXPECT_THAT(later.lost[0].cause, HasSubstr("went silent (rank 0: rank 1 did not answer)"));
}

TEST(Regroup, ARankThatNoticesNothingIsLostAtLast) {
  const std::vector<RankFacts> ranks{killed(0), at_work(1), without(2, 0)};
  EXPECT_EQ(after(ranks, 109, 2).now, Now::wait);
  const Regrouping later = after(ranks, 110, 2);
  EXPECT_EQ(later.now, Now::meet);
  EXPECT_THAT(lost(later), ElementsAre(0, 1));
}

TEST(Regroup, ARankThatIsNamedInPlaceOfTheLostOneHasTimeToSaySo) {
  const std::vector<RankFacts> ranks{killed(0), at_work(1), without(2, 1)};
  EXPECT_EQ(after(ranks, 50).now, Now::wait);
  EXPECT_EQ(after(ranks, 110).now, Now::fail) << "one more than may be lost";
}

TEST(Regroup, OfRanksThatHaveLostOneAnotherTheOneThatMostNameIsLost) {
  const Regrouping all = after({without(0, 2), without(1, 0), without(2, 0)});
  EXPECT_EQ(all.now, Now::meet);
  EXPECT_THAT(lost(all), ElementsAre(0));
  EXPECT_EQ(all.lost[0].cause, "lost its connection to rank 1, which goes on (rank 0 did not answer)");
  EXPECT_EQ(all.lost[0].kind, ErrorKind::lost_peer);
}

TEST(Regroup, OfTwoThatHaveLostOneAnotherTheSecondIsLost) {
  EXPECT_THAT(lost(after({without(0, 1), without(1, 0)})), ElementsAre(1));
  EXPECT_EQ(after({without(0, 1), without(1, 0)}, 10, 0).now, Now::fail);
}

TEST(Regroup, NoTwoGoOnOfWhichOneHasLostTheOther) {
  const std::vector<RankFacts> halves{without(0, 2), without(1, 3), without(2, 0), without(3, 1)};
  EXPECT_EQ(after(halves).now, Now::fail) << "two are one more than may be lost";
  const Regrouping all = after(halves, 10, 2);
  EXPECT_EQ(all.now, Now::meet);
  EXPECT_THAT(lost(all), ElementsAre(3, 2));
}

TEST(Regroup, RanksThatHaveLostNobodyWhoIsKnownDoNotGoOn) {
  EXPECT_EQ(after({without(0, -1), without(1, 7)}).now, Now::fail);
}

RankFacts trained(int rank) {
  RankFacts facts = at_work(rank);
  facts.trained = true;
  return facts;
}

TEST(Regroup, OnceTheFirstHasTrainedTheOthersAreNoMatter) {
  EXPECT_EQ(after({trained(0), killed(1), without(2, 1)}).now, Now::work);
  EXPECT_EQ(after({trained(0), killed(1)}, 10, 0).now, Now::work);
}

TEST(Regroup, RanksThatHaveTrainedGoOnWhereTheFirstIsLost) {
  RankFacts first = trained(0);
  first.exit = process::ExitState{0, 9};
  first.failed_at_s = 10;
  const Regrouping all = after({first, trained(1), without(2, 0)});
  EXPECT_EQ(all.now, Now::meet);
  EXPECT_THAT(lost(all), ElementsAre(0));
}

TEST(Regroup, TheFirstMayStillEndItsStepsAfterOthersHave) {
  EXPECT_EQ(after({at_work(0), trained(1), killed(2)}, 109).now, Now::wait);
  const Regrouping later = after({at_work(0), trained(1), killed(2)}, 110, 2);
  EXPECT_THAT(lost(later), ElementsAre(0, 2));
}

TEST(Regroup, NotMoreAreLostThanMayBe) {
  EXPECT_EQ(after({killed(0), killed(1), without(2, 0)}).now, Now::fail);
  EXPECT_EQ(after({killed(0), killed(1), without(2, 0)}, 10, 2).now, Now::meet);
  EXPECT_EQ(after({killed(0), killed(1)}, 10, 2).now, Now::fail) << "somebody must be left";
}

TEST(Regroup, ARunThatHasNotBegunOrIsDoneOrIsWrongDoesNotGoOn) {
  RankFacts never_ready = killed(1);
  never_ready.ready = false;
  EXPECT_EQ(after({at_work(0), never_ready}).now, Now::fail);
  RankFacts starting = at_work(1);
  starting.ready = false;
  EXPECT_EQ(after({killed(0), starting}).now, Now::wait) << "it may have said so already";
  RankFacts done = at_work(1);
  done.done = true;
  EXPECT_EQ(after({killed(0), done}).now, Now::fail);
  EXPECT_EQ(after({failed_with(0, ErrorKind::usage), without(1, 0)}).now, Now::fail);
}

TEST(Regroup, ARankThatDiesWhileItWaitsIsLost) {
  RankFacts gone = without(1, 0);
  gone.exit = process::ExitState{0, 9};
  const Regrouping all = after({killed(0), gone, without(2, 0)}, 10, 2);
  EXPECT_EQ(all.now, Now::meet);
  EXPECT_THAT(lost(all), ElementsAre(0, 1));
}

TEST(WaitForAgreement, EndsWhereNoneIsToCome) {
  const auto after = [](const std::vector<RankFacts>& ranks, double now_s, int may_be_lost = 1) {
    return wait_for_agreement(ranks, may_be_lost, now_s, 300);
  };
  EXPECT_EQ(after({at_work(0), at_work(1)}, 10), Now::work);
  EXPECT_EQ(after({killed(0), at_work(1)}, 10), Now::wait);
  EXPECT_EQ(after({killed(0), at_work(1)}, 309), Now::wait);
  EXPECT_EQ(after({killed(0), at_work(1)}, 310), Now::fail) << "nothing was heard of one";
  EXPECT_EQ(after({killed(0), killed(1)}, 10), Now::fail);
  EXPECT_EQ(after({killed(0), at_work(1)}, 10, 0), Now::fail) << "none may be lost";
  EXPECT_EQ(after({failed_with(0, ErrorKind::usage), at_work(1)}, 10), Now::fail);
}

}  // namespace
}  // namespace remuda::workers
