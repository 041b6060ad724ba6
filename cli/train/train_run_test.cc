#include "cli/train/train_run.h"

#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

TEST(TrainRun, MayLoseNoMoreRanksThanLeaveOne) {
  job::TrainJob job;
  job.devices = {{"cpu:0"}, {"cpu:1"}, {"cpu:2"}};
  EXPECT_EQ(elasticity_of(job).value().may_be_lost, 0);
  job.elastic.ranks_lost = 7;
  const workers::Elasticity elasticity = elasticity_of(job).value();
  EXPECT_EQ(elasticity.may_be_lost, 2);
  ASSERT_EQ(elasticity.meetings.size(), 2U) << "a place for each time";
  EXPECT_NE(elasticity.meetings[0].port, elasticity.meetings[1].port);
}

TEST(TrainRun, WaitsForALossToBeNoticedAsLongAsAMeetingMayTake) {
  job::TrainJob job;
  job.elastic.timeout_s = 2;
  EXPECT_EQ(elasticity_of(job).value().notice_s, 90) << "the 60 s of a meeting, and what comes before it";
  job.elastic.timeout_s = 100;
  EXPECT_EQ(elasticity_of(job).value().notice_s, 100);
}

}  // namespace
}  // namespace remuda::cli
