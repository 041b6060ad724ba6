#include <gmock/gmock.h>

#include "base/text.h"
#include "job/schema.h"

namespace remuda::job {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(JobReference, HasALineForEveryKey) {
  const auto lines = split(job_reference(), '\n');
  ASSERT_THAT(lines, SizeIs(job_keys().size() + 2));
  for (size_t i = 0; i < job_keys().size(); ++i) EXPECT_TRUE(lines[i + 1].starts_with(job_keys()[i].name + " "));
}

TEST(JobReference, TellsTypeDefaultAndWhatItIsFor) {
  const std::string text = job_reference();
  EXPECT_THAT(text, ContainsRegex("model.hidden +a list of integers from 1 to 1048576 +\\[256, 128\\] +mlp: width"));
  EXPECT_THAT(text, ContainsRegex("train.global_batch +an integer from 1 to 16777216 +required "));
  EXPECT_THAT(text, ContainsRegex("data.test.images +a path +required in data.test "));
  EXPECT_THAT(text, ContainsRegex("model.path +a path +- "));
}

}  // namespace
}  // namespace remuda::job
