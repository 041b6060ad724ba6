#include "cli/train/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json run(double share, double efficiency) {
  return {{"devices",
           {{{"id", "cpu:0"}, {"slowdown", 1.0}, {"share", share}, {"compute_s", 9.0}, {"wait_s", 1.0}},
            {{"id", "cpu:1"}, {"slowdown", 3.0}, {"share", 1 - share}, {"compute_s", 0.0}, {"wait_s", 0.0}}}},
          {"efficiency", efficiency},
          {"balance", {{"policy", "auto"}}},
          {"loss_per_epoch", {0.5, 0.25}}};
}

TEST(Report, ComparesRunsRowByRow) {
  const std::string text = comparison_text({"one", "two"}, {run(0.75, 0.971), run(0.5, 0.49)});
  EXPECT_THAT(text, HasSubstr("one"));
  EXPECT_THAT(text, ::testing::ContainsRegex("share of cpu:0 +75.0 % +50.0 %"));
  EXPECT_THAT(text, ::testing::ContainsRegex("waiting, cpu:0 +10.0 % +10.0 %"));
  EXPECT_THAT(text, ::testing::ContainsRegex("efficiency +0.971 +0.490"));
  EXPECT_THAT(text, ::testing::ContainsRegex("last training loss +0.2500 +0.2500"));
}

TEST(Report, LeavesOutWhatNoRunHas) {
  const std::string text = comparison_text({"one"}, {run(0.75, 0.971)});
  EXPECT_THAT(text, Not(HasSubstr("test accuracy")));
  EXPECT_THAT(text, Not(HasSubstr("waiting, cpu:1")));
}

TEST(Report, RunsOfUnlikeSizeStandTogether) {
  Json small = run(1, 1);
  small["devices"].erase(1);
  const std::string text = comparison_text({"two devices", "one"}, {run(0.75, 0.9), small});
  EXPECT_THAT(text, ::testing::ContainsRegex("share of cpu:1.* +25.0 % +-"));
}

}  // namespace
}  // namespace remuda::cli
