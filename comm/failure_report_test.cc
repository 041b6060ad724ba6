#include "comm/failure_report.h"

#include <gtest/gtest.h>

namespace remuda::comm {
namespace {

TEST(FailureReport, ALostRankIsNamedWithTheRankThatReportsIt) {
  const auto report = report_of({ErrorKind::lost_peer, "rank 2 is silent", 2}, 1, 7);
  const auto cause = cause_in(report, 1, 0);
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, ErrorKind::lost_peer);
  EXPECT_EQ(cause->peer, 2);
  EXPECT_EQ(cause->message, "rank 2 went away in call #7, as rank 1 reports");
}

TEST(FailureReport, TheLostRankItselfIsToldWhoGaveItUp) {
  const auto cause = cause_in(report_of({ErrorKind::lost_peer, "rank 0 is silent", 0}, 1, 7), 1, 0);
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->peer, 1);
  EXPECT_EQ(cause->message, "rank 1 gave up waiting for this rank, 0, in call #7");
}

TEST(FailureReport, AnotherCauseIsPassedOnInItsOwnWords) {
  const auto cause = cause_in(report_of({ErrorKind::failed, "rank 1 has no memory"}, 1, 7), 1, 0);
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, ErrorKind::failed);
  EXPECT_EQ(cause->message, "rank 1 has no memory");
}

TEST(FailureReport, ALongSentenceIsCutAndAnEmptyOneIsNoCause) {
  const auto cut = cause_in(report_of({ErrorKind::failed, std::string(1000, 'a')}, 1, 7), 1, 0);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->message, std::string(sizeof(FailureReport::sentence), 'a'));
  EXPECT_FALSE(cause_in(report_of({ErrorKind::failed, ""}, 1, 7), 1, 0));
}

TEST(FailureReport, NothingInItReachesATerminalAsItIs) {
  FailureReport report = report_of({ErrorKind::failed, "\x1b[2J"}, 1, 7);
  EXPECT_EQ(cause_in(report, 1, 0)->message.find('\x1b'), std::string::npos);
  report.length = 0xffffffff;
  EXPECT_LE(cause_in(report, 1, 0)->message.size(), 4 * sizeof report.sentence);
}

}  // namespace
}  // namespace remuda::comm
