#include "train/step_trace.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"

namespace remuda::train {
namespace {

const balance::TraceHead kHead{8, {{"cpu:0", 1, {{8, 0.5}}}}};
const balance::TraceStep kStep{1, {8}, {0.5}, {0}};

TEST(StepTrace, WritesALineAtOnceForTheHeadAndEachStep) {
  const ScratchFolder folder;
  const Fd file(::open(folder.path("trace").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  StepTrace trace(file.get());
  trace.begin(kHead);
  trace.add(kStep);
  EXPECT_EQ(folder.read("trace"), balance::trace_line(kHead) + "\n" + balance::trace_line(kStep) + "\n");
}

TEST(StepTrace, ReportsAFullDiskOnceAndGoesOn) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  StepTrace trace(full.get());
  ::testing::internal::CaptureStderr();
  trace.begin(kHead);
  trace.add(kStep);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex("the trace ends here: [^\n]*No space left on device[^\n]*\n"));
  EXPECT_FALSE(trace.active());
}

TEST(StepTrace, WritesNothingWhenNotAskedFor) {
  StepTrace trace(-1);
  ::testing::internal::CaptureStderr();
  trace.begin(kHead);
  trace.add(kStep);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace remuda::train
