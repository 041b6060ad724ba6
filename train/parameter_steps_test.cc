#include "train/parameter_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::train {
namespace {

using ::testing::ElementsAre;

/// Parameters of 4, 3, 5 and 2 elements, the last one of another group; one bucket, of which rank 0 owns the first 7.
FlatLayout small_layout() {
  const std::vector<size_t> sizes{4, 3, 5, 2}, groups{0, 0, 0, 1};
  return FlatLayout(sizes, groups, {.element_bytes = 64, .bucket_bytes = 1e9, .state_shares = {1, 1}, .blocks = {}});
}

std::vector<std::string> texts(const std::vector<ParameterSteps::Run>& runs) {
  std::vector<std::string> all;
  for (const ParameterSteps::Run& run : runs)
    all.push_back(std::to_string(run.range.begin) + "-" + std::to_string(run.range.end) + " group " +
                  std::to_string(run.group) + " step " + std::to_string(run.step));
  return all;
}

TEST(ParameterSteps, AllTogetherAreThePiecesOfTheLayout) {
  const FlatLayout all = small_layout();
  ParameterSteps steps(all);
  steps.begin();
  EXPECT_THAT(texts(steps.runs(0, 0)), ElementsAre("0-7 group 0 step 1"));
  EXPECT_THAT(texts(steps.runs(0, 1)), ElementsAre("7-12 group 0 step 1", "12-14 group 1 step 1"));
  EXPECT_TRUE(steps.idle().empty());
}

TEST(ParameterSteps, EachCountsThoseThatItHasMade) {
  const FlatLayout all = small_layout();
  ParameterSteps steps(all);
  steps.begin({1, 0, 1, 1});
  EXPECT_THAT(texts(steps.runs(0, 0)), ElementsAre("0-4 group 0 step 1", "4-7 group 0 step 0"));
  ASSERT_EQ(steps.idle().size(), 1u);
  EXPECT_EQ(steps.idle()[0].begin, 4u);
  EXPECT_EQ(steps.idle()[0].end, 7u);
  steps.begin({1, 1, 0, 1});
  EXPECT_THAT(texts(steps.runs(0, 0)), ElementsAre("0-4 group 0 step 2", "4-7 group 0 step 1"));
  EXPECT_THAT(texts(steps.runs(0, 1)), ElementsAre("7-12 group 0 step 0", "12-14 group 1 step 2"));
  EXPECT_EQ(steps.steps(), 2);
  EXPECT_THAT(steps.missed(), ElementsAre(0, 1, 1, 0));

  ParameterSteps other(all);
  other.set_missed(steps.missed());
  other.set_steps(2);
  other.begin();
  EXPECT_THAT(texts(other.runs(0, 0)), ElementsAre("0-4 group 0 step 3", "4-7 group 0 step 2"));
}

}  // namespace
}  // namespace remuda::train
