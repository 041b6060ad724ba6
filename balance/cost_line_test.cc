#include "balance/cost_line.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace remuda::balance {
namespace {

CostLine fit(std::vector<BatchTime> times) { return fit_line(times); }

TEST(CostLine, GivesSeconds) { EXPECT_DOUBLE_EQ((CostLine{4e-3, 2e-4}.seconds(10)), 6e-3); }

TEST(FitLine, FindsTheLineBehindExactTimes) {
  const CostLine line = fit({{10, 3.0}, {20, 5.0}, {40, 9.0}});
  EXPECT_NEAR(line.fixed_s, 1.0, 1e-9);
  EXPECT_NEAR(line.per_sample_s, 0.2, 1e-9);
}

TEST(FitLine, CountsEachTimeByItsWeight) {
  const CostLine light = fit({{10, 2.0, 1}, {20, 3.0, 1}, {40, 6.0, 1}});
  const CostLine heavy = fit({{10, 2.0, 1}, {20, 3.0, 1}, {40, 6.0, 100}});
  EXPECT_GT(std::abs(light.seconds(40) - 6), 10 * std::abs(heavy.seconds(40) - 6));
}

TEST(FitLine, WeighsErrorsAgainstTheTimeTheyDisturb) {
  const CostLine line = fit({{10, 2.0}, {20, 3.3}, {1000, 100.0}});
  EXPECT_LT(std::abs(line.seconds(10) - 2), 0.1);
  EXPECT_GT(std::abs(line.seconds(1000) - 100), 1);
}

TEST(FitLine, TakesOneBatchSizeAsProportional) {
  EXPECT_DOUBLE_EQ(fit({{10, 3.0}}).fixed_s, 0);
  EXPECT_DOUBLE_EQ(fit({{10, 3.0}}).per_sample_s, 0.3);
  EXPECT_DOUBLE_EQ(fit({{10, 2.0}, {10, 4.0}}).per_sample_s, 0.4);
}

TEST(FitLine, TakesFallingTimesAsProportionalToTheLast) {
  const CostLine line = fit({{40, 3.0}, {10, 3.5}});
  EXPECT_DOUBLE_EQ(line.fixed_s, 0);
  EXPECT_DOUBLE_EQ(line.per_sample_s, 0.35);
}

TEST(FitLine, TakesANegativeFixedCostAsProportionalToTheLast) {
  const CostLine line = fit({{10, 1.0}, {20, 4.0}});
  EXPECT_DOUBLE_EQ(line.fixed_s, 0);
  EXPECT_DOUBLE_EQ(line.per_sample_s, 0.2);
}

TEST(FitLineDeathTest, RefusesWhatIsNoTime) {
  EXPECT_DEATH(fit({}), "fitted to something");
  EXPECT_DEATH(fit({{0, 1.0}}), "a time is positive");
  EXPECT_DEATH(fit({{1, -1.0}}), "a time is positive");
}

}  // namespace
}  // namespace remuda::balance
