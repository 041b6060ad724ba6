#include "train/step_log.h"

#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"

namespace remuda::train {
namespace {

StepTotals times_of(double first_wait_s, double second_wait_s) {
  StepTotals totals;
  totals.compute_s = {1, 1};
  totals.wait_s = {first_wait_s, second_wait_s};
  totals.data_s = totals.update_s = totals.memory_bytes = {0, 0};
  return totals;
}

job::TrainJob job_of_two() {
  job::TrainJob job;
  job.devices = {{.use = "cpu:0"}, {.use = "gpu:0"}};
  return job;
}

TEST(StepLog, TimesBelongToTheStepBeforeAndCountOnce) {
  const job::TrainJob job = job_of_two();
  StepLog log(job, 0, -1);
  log.timed(times_of(9, 9));
  EXPECT_TRUE(log.kept().history.empty()) << "no step was made before";
  log.made({1, 2.5, 0.1, {6, 2}});
  log.timed(times_of(0.5, 0.25));
  log.timed(times_of(9, 9));  // of a step that was repeated
  EXPECT_EQ(log.kept().communication_s, 0.25);
  const Json history = log.kept().history.to_json();
  EXPECT_EQ(history["loss"], Json({2.5}));
  EXPECT_EQ(history["share"][0][0], 0.75);
}

TEST(StepLog, FilesThatEndedBeforeTheRunAreUnwritten) {
  const job::TrainJob job = job_of_two();
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  StepLog log(job, 0, full.get());
  EXPECT_TRUE(log.unwritten().empty());
  ::testing::internal::CaptureStderr();
  log.begin({{}, {}});
  ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(log.unwritten().size(), 1u);
  EXPECT_EQ(log.unwritten()[0].output, "step_times");
  EXPECT_EQ(log.unwritten()[0].why, "cannot write the step times: No space left on device");
}

TEST(StepLog, OtherRanksKeepNothing) {
  const ScratchFolder folder;
  job::TrainJob job = job_of_two();
  job.output.tensorboard = folder.path("runs");
  StepLog log(job, 1, -1);
  ASSERT_TRUE(log.open());
  log.made({1, 2.5, 0.1, {6, 2}});
  log.timed(times_of(0, 0));
  EXPECT_TRUE(log.kept().history.empty());
  EXPECT_FALSE(std::filesystem::exists(folder.path("runs")));
}

TEST(StepLog, WhereTheFirstRankMayBeLostOthersHaveItsHistory) {
  job::TrainJob job = job_of_two();
  job.elastic.ranks_lost = 1;
  StepLog log(job, 1, -1);
  for (int step = 1; step <= 4; ++step) {
    log.made({step, 2.5, 0.1, {6, 2}});
    log.timed(times_of(0.5, 0.25));
  }
  StepLog next(job, 0, -1);
  next.go_on(log.kept(), 2, {1});
  EXPECT_EQ(next.kept().communication_s, 1);
  EXPECT_EQ(next.kept().history.to_json()["last_step"], Json({1, 2}));
  EXPECT_EQ(next.kept().history.to_json()["share"], Json::parse("[[0.25, 0.25]]"));
}

TEST(StepLog, ShowsTheLastStepWithoutTimes) {
  const ScratchFolder folder;
  job::TrainJob job = job_of_two();
  job.output.tensorboard = folder.path("runs");
  StepLog log(job, 0, -1);
  ASSERT_TRUE(log.open());
  const auto entry = *std::filesystem::directory_iterator(folder.path("runs"));
  const std::string name = "runs/" + entry.path().filename().string();
  const size_t head = folder.read(name).size();
  log.made({1, 2.5, 0.1, {6, 2}});
  EXPECT_EQ(folder.read(name).size(), head);
  log.finish();
  log.finish();
  const size_t with_step =
      head + tf_record(event_of(1, 0, std::vector<Scalar>{{"loss", 0}, {"learning_rate", 0}})).size();
  EXPECT_EQ(folder.read(name).size(), with_step);
}

}  // namespace
}  // namespace remuda::train
