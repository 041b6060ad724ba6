#include "train/step_times_file.h"

#include <cmath>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"

namespace remuda::train {
namespace {

const balance::StepTimesHead kHead{8, {{"cpu:0", 2, {{8, 0.5}}}}};
const std::vector<std::vector<balance::BatchTime>> kAlone{{{16, INFINITY}, {8, 0.5}}};
const balance::TimedStep kStep{1, {8}, {0.5}, {0}};

job::TrainJob one_device_job() {
  job::TrainJob job;
  job.train.global_batch = 8;
  job.devices = {{.use = "cpu:0", .slowdown = 2}};
  return job;
}

TEST(StepTimesFile, WritesALineAtOnceForTheHeadAndEachStep) {
  const ScratchFolder folder;
  const Fd file(::open(folder.path("times").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  StepTimesFile times(file.get());
  times.begin(one_device_job(), kAlone);
  times.add(kStep);
  EXPECT_EQ(folder.read("times"), balance::step_times_line(kHead) + "\n" + balance::step_times_line(kStep) + "\n");
}

TEST(StepTimesFile, ReportsAFullDiskOnceAndGoesOn) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  StepTimesFile times(full.get());
  ::testing::internal::CaptureStderr();
  times.begin(one_device_job(), kAlone);
  times.add(kStep);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex("the step times end here: [^\n]*No space left on device[^\n]*\n"));
  EXPECT_FALSE(times.active());
}

TEST(StepTimesFile, SaysThatItsFileIsGone) {
  const ScratchFolder folder;
  const Fd file(::open(folder.path("times").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  StepTimesFile times(file.get());
  times.add(kStep);
  EXPECT_EQ(times.why_ended(), "");
  ASSERT_EQ(::unlink(folder.path("times").c_str()), 0);
  EXPECT_EQ(times.why_ended(), "cannot write the step times: it was removed meanwhile");
}

TEST(StepTimesFile, WritesNothingWhenNotAskedFor) {
  StepTimesFile times(-1);
  EXPECT_EQ(times.why_ended(), "");
  ::testing::internal::CaptureStderr();
  times.begin(one_device_job(), kAlone);
  times.add(kStep);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace remuda::train
