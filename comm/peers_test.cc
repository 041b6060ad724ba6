// Peers and the calls they describe: which rank is named when one of them fails.
#include "comm/peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "comm/testing/socket_pair.h"

namespace remuda::comm {
namespace {

using testing::HasSubstr;

/// Three ranks of one process, each joined to the others.
class PeersTest : public testing::Test {
 protected:
  PeersTest() {
    std::vector<std::vector<Link>> control(3);
    for (auto& of_rank : control) of_rank.resize(3);
    for (int a = 0; a < 3; ++a)
      for (int b = a + 1; b < 3; ++b) {
        SocketPair pair;
        control[a][b] = std::move(pair.first);
        control[b][a] = std::move(pair.second);
      }
    for (int rank = 0; rank < 3; ++rank) ranks_.push_back(std::make_unique<Peers>(rank, std::move(control[rank])));
  }
  Peers& rank(int number) { return *ranks_[number]; }
  void end(int number) { ranks_[number].reset(); }
  static Error lost(int rank) { return {ErrorKind::lost_peer, "it is lost", rank}; }

  std::vector<std::unique_ptr<Peers>> ranks_;
  const Call call_{.kind = Call::Kind::barrier, .sequence = 5};
};

TEST_F(PeersTest, SilenceIsNoError) {
  EXPECT_TRUE(rank(0).check(5));
  EXPECT_FALSE(rank(0).gone(1));
}

TEST_F(PeersTest, AReportedFailureNamesTheLostRankAndWhoReportedIt) {
  rank(1).report_failure(lost(2), 5);
  const auto checked = rank(0).check(5);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind, ErrorKind::lost_peer);
  EXPECT_EQ(checked.error().peer, 2);
  EXPECT_THAT(checked.error().message, HasSubstr("rank 2 went away in call #5, as rank 1 reports"));
  EXPECT_TRUE(rank(0).gone(1));
}

TEST_F(PeersTest, AFailureInALaterCallDoesNotEndThisOne) {
  rank(1).report_failure(lost(2), 6);
  EXPECT_TRUE(rank(0).check(5));
  EXPECT_TRUE(rank(0).gone(1));
  EXPECT_FALSE(rank(0).check(6));
}

TEST_F(PeersTest, ARankThatIsItselfBlamedIsToldByWhom) {
  rank(1).report_failure(lost(0), 5);
  const auto checked = rank(0).check(5);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().peer, 1);
  EXPECT_THAT(checked.error().message, HasSubstr("rank 1 gave up waiting for this rank, 0, in call #5"));
}

TEST_F(PeersTest, AReasonThatIsNoLostRankIsToldToThoseWhoMissTheRank) {
  rank(1).report_failure({ErrorKind::failed, "rank 1 has no memory"}, 5);
  EXPECT_TRUE(rank(0).check(5)) << "it may have done its part";
  EXPECT_TRUE(rank(0).gone(1));
  const Error cause = rank(0).cause(1, call_);
  EXPECT_EQ(cause.kind, ErrorKind::failed);
  EXPECT_EQ(cause.message, "rank 1 has no memory");
}

TEST_F(PeersTest, ARankThatGivesNoReasonIsGone) {
  rank(1).report_failure({ErrorKind::failed, ""}, 5);
  EXPECT_TRUE(rank(0).check(5));
  EXPECT_TRUE(rank(0).gone(1));
  const Error cause = rank(0).cause(1, call_);
  EXPECT_EQ(cause.peer, 1);
  EXPECT_THAT(cause.message, HasSubstr("rank 1 went away during barrier #5"));
}

TEST_F(PeersTest, AConnectionThatEndsIsARankThatIsGone) {
  end(2);
  EXPECT_TRUE(rank(0).check(5));
  EXPECT_TRUE(rank(0).gone(2));
  EXPECT_EQ(rank(0).cause(2, call_).peer, 2);
}

TEST_F(PeersTest, TheCauseBehindAnEndedConnectionIsAwaited) {
  std::jthread late([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    rank(1).report_failure(lost(2), 5);
  });
  EXPECT_EQ(rank(0).cause(1, call_).peer, 2) << "rank 1 lost rank 2 and reports it";
}

TEST_F(PeersTest, TheFirstReportCounts) {
  rank(1).report_failure(lost(2), 5);
  EXPECT_FALSE(rank(0).check(5));
  rank(2).report_failure(lost(1), 4);
  EXPECT_EQ(rank(0).check(5).error().peer, 2);
}

TEST_F(PeersTest, OnlyThoseThatAreThereAreWatched) {
  end(2);
  EXPECT_TRUE(rank(0).check(5));
  std::vector<pollfd> polled;
  rank(0).watch(polled);
  EXPECT_EQ(polled.size(), 1u);
}

TEST(Call, AnyDifferenceIsNamed) {
  const Call mine{.kind = Call::Kind::broadcast, .label = 1, .sequence = 2, .bytes = 3, .offset = 4, .root = 5};
  EXPECT_TRUE(check_same(0, mine, 1, mine));
  std::vector<Call> others(6, mine);
  others[0].kind = Call::Kind::barrier;
  others[1].label = 9;
  others[2].sequence = 9;
  others[3].bytes = 9;
  others[4].offset = 9;
  others[5].root = 9;
  for (const Call& other : others) {
    const auto same = check_same(0, mine, 1, other);
    ASSERT_FALSE(same);
    EXPECT_EQ(same.error().kind, ErrorKind::failed);
    EXPECT_THAT(same.error().message,
                HasSubstr("rank 0 is at broadcast #2 (label 1, 3 bytes from rank 5 at offset 4)"));
    EXPECT_THAT(same.error().message, HasSubstr("rank 1 is at " + describe(other)));
    EXPECT_NE(describe(other), describe(mine));
  }
}

TEST(Call, ADifferenceThatIsNoOneOfTheCallIsSaidInWords) {
  const Call mine{.kind = Call::Kind::reduce_scatter, .bytes = 8, .parts = 7};
  Call other = mine;
  other.parts = 0xbadcafe;
  EXPECT_EQ(check_same(1, mine, 0, other).error().message,
            "rank 0 and rank 1 are at reduce_scatter #0 (label 0, 8 bytes), but divide the values among the ranks in "
            "unlike ways");
  other.label = 9;
  EXPECT_THAT(check_same(1, mine, 0, other).error().message, HasSubstr("rank 0 is at reduce_scatter #0 (label 9, "));
}

TEST(Call, NamesLabelsAsTheProgramDoes) {
  name_labels([](uint32_t label) { return "bucket " + std::to_string(label); });
  EXPECT_EQ(describe({.kind = Call::Kind::barrier, .label = 4}), "barrier #0 (bucket 4, 0 bytes)");
  name_labels([](uint32_t label) { return "label " + std::to_string(label); });
}

}  // namespace
}  // namespace remuda::comm
