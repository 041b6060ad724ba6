#include "cli/jobs/job_name.h"

#include <gmock/gmock.h>

namespace remuda::cli {
namespace {

TEST(JobName, IsANumberOrAnArrayAndAnIndex) {
  EXPECT_EQ(parse_job_name("12"), (JobName{12, std::nullopt}));
  EXPECT_EQ(parse_job_name("5.7"), (JobName{5, 7}));
  EXPECT_EQ(parse_job_name("5.0"), (JobName{5, 0}));
  for (const char* wrong : {"", ".", "5.", ".7", "5.7.1", "-1", "5.-7", "+5", "gpu:0", " 5", "99999999999999999999"})
    EXPECT_EQ(parse_job_name(wrong), std::nullopt) << wrong;
}

TEST(JobName, NamesAJobOfAnArrayByItsIndex) {
  pool::Job job;
  job.id = 13;
  EXPECT_EQ(name_of(job), "13");
  job.array = 5;
  job.array_index = 7;
  EXPECT_EQ(name_of(job), "5.7");
  job.array = 13;
  EXPECT_EQ(name_of(job), "13") << "the job that stands for an array";
}

}  // namespace
}  // namespace remuda::cli
