#include "cli/train/train_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

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

TEST(TrainRun, WhatIsKeptIsWhatTheDiskHas) {
  const ScratchFolder folder;
  job::TrainJob job;
  EXPECT_EQ(what_is_kept(job), "");
  job.checkpoint.folder = folder.path("kept");
  EXPECT_EQ(what_is_kept(job), "the run has kept no checkpoint of itself");
  for (const int step : {5, 10})
    EXPECT_TRUE(checkpoint::publish(checkpoint::begin(job.checkpoint.folder, step).value(), {.step = step}));
  EXPECT_TRUE(checkpoint::begin(job.checkpoint.folder, 15)) << "which is not whole";
  const checkpoint::Stored last = checkpoint::place_of(job.checkpoint.folder, 10);
  EXPECT_EQ(what_is_kept(job), "the last checkpoint of the run is that after step 10, in " + last.folder);
  checkpoint::abandon(last);
  EXPECT_THAT(what_is_kept(job), testing::HasSubstr("after step 5"));
}

TEST(TrainRun, SaysWhichOutputsAreLostAndWhereTheWeightsAreAllTheSame) {
  const ScratchFolder folder;
  job::TrainJob job;
  job.checkpoint.folder = folder.path("kept");
  Json report{{"steps", 10}};
  EXPECT_EQ(lost_outputs_text(report, job), "");
  report["unwritten"] = {{{"output", "weights"}, {"why", "cannot write w"}}};
  const std::string weights = "not all that the run was to leave could be written: the weights: cannot write w";
  EXPECT_EQ(lost_outputs_text(report, job), weights);
  EXPECT_TRUE(checkpoint::publish(checkpoint::begin(job.checkpoint.folder, 10).value(), {.step = 10}));
  EXPECT_EQ(lost_outputs_text(report, job), weights + "; the last checkpoint has them: remuda checkpoint export " +
                                                job.checkpoint.folder + " FILE.safetensors");
  report["steps"] = 11;
  EXPECT_EQ(lost_outputs_text(report, job), weights) << "that one is older";
  report["unwritten"] = {{{"output", "checkpoint"}, {"why", "cannot make k"}}};
  EXPECT_EQ(lost_outputs_text(report, job),
            "not all that the run was to leave could be written: the last checkpoint: cannot make k; the last "
            "checkpoint of the run is that after step 10, in " +
                checkpoint::place_of(job.checkpoint.folder, 10).folder);
}

}  // namespace
}  // namespace remuda::cli
