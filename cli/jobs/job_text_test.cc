#include "cli/jobs/job_text.h"

#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

TEST(JobText, SaysHowAJobEndedAlsoWhereThePoolDoesNotTell) {
  pool::Job job;
  job.state = pool::JobState::ended;
  job.exit_status = 2;
  EXPECT_EQ(end_text(job), "failed");
  job.exit_status = 0;
  EXPECT_EQ(end_text(job), "ended well");
  job.cancelled = true;
  EXPECT_EQ(end_text(job), "was cancelled");
  job.why = "was cancelled by root";
  EXPECT_EQ(end_text(job), "was cancelled by root");
}

}  // namespace
}  // namespace remuda::cli
