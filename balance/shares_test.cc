#include "balance/shares.h"

#include <cmath>
#include <gmock/gmock.h>
#include <numeric>
#include <rapidcheck/gtest.h>

namespace remuda::balance {
namespace {

using ::testing::ElementsAre;

std::vector<int> split(int total, std::vector<double> weights) { return apportion(total, weights); }

TEST(Apportion, FollowsProportions) {
  EXPECT_THAT(split(100, {3, 1}), ElementsAre(75, 25));
  EXPECT_THAT(split(10, {1, 1, 1}), ElementsAre(4, 3, 3));
  EXPECT_THAT(split(7, {0, 5}), ElementsAre(0, 7));
}

TEST(Apportion, GivesWhatIsLeftToTheLargestRemainder) {
  EXPECT_THAT(split(10, {1.4, 1.1, 7.5}), ElementsAre(1, 1, 8));
  EXPECT_THAT(split(3, {1, 2.5}), ElementsAre(1, 2));
}

TEST(Apportion, BreaksTiesByRank) {
  EXPECT_THAT(split(2, {1, 1, 1, 1}), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(split(5, {1, 1}), ElementsAre(3, 2));
}

TEST(Apportion, TakesAllZeroWeightsAsEqual) { EXPECT_THAT(split(6, {0, 0, 0}), ElementsAre(2, 2, 2)); }

TEST(Apportion, TakesIntegers) { EXPECT_THAT(apportion(8, std::vector<int>{3, 1}), ElementsAre(6, 2)); }

TEST(Apportion, GivesWholeUnitsAndWhatIsLeftToTheLast) {
  const auto in_units = [](int total, std::vector<int> weights) { return apportion(total, weights, 16); };
  EXPECT_THAT(in_units(96, {64, 32}), ElementsAre(64, 32));
  EXPECT_THAT(in_units(40, {64, 32}), ElementsAre(32, 8));
  EXPECT_THAT(in_units(40, {64, 32, 0}), ElementsAre(32, 8, 0));
  EXPECT_THAT(in_units(40, {96, 0}), ElementsAre(40, 0));
  EXPECT_THAT(in_units(7, {32, 32}), ElementsAre(7, 0));
  EXPECT_THAT(in_units(0, {32, 32}), ElementsAre(0, 0));
}

TEST(Shares, OfNoFewerThanTheLeast) {
  const auto in_pairs = [](int total, std::vector<int> weights) { return apportion(total, weights, 2, 2); };
  EXPECT_THAT(in_pairs(16, {5, 1}), ElementsAre(14, 2));
  EXPECT_THAT(in_pairs(17, {8, 8}), ElementsAre(8, 9));
  EXPECT_THAT(in_pairs(3, {1, 1, 1}), ElementsAre(3, 0, 0));
  EXPECT_THAT(in_pairs(7, {3, 1, 0}), ElementsAre(4, 3, 0));
  EXPECT_THAT(in_pairs(1, {1, 1}), ElementsAre(1, 0)) << "there are no more";
  EXPECT_THAT(apportion(20, std::vector<int>{1, 1, 1}, 3, 2), ElementsAre(9, 6, 5));
  for (int total = 2; total < 60; ++total)
    for (const std::vector<int>& weights : {std::vector<int>{1, 1, 1, 1}, {30, 1}, {1, 5, 2}})
      for (const int unit : {2, 3, 5}) {
        int sum = 0;
        for (const int part : apportion(total, weights, unit, 2)) {
          EXPECT_NE(part, 1) << total << " in units of " << unit;
          sum += part;
        }
        EXPECT_EQ(sum, total);
      }
}

TEST(Shares, AUnitDividesTheBatch) {
  EXPECT_EQ(least_unit(16, 2), 2);
  EXPECT_EQ(least_unit(15, 2), 3);
  EXPECT_EQ(least_unit(7, 2), 7);
  EXPECT_EQ(least_unit(7, 1), 1);
  EXPECT_EQ(least_unit(1, 2), 1);
}

TEST(Apportion, StandsWeightsOfAnySize) {
  EXPECT_THAT(split(4, {1e308, 1e308}), ElementsAre(2, 2));
  EXPECT_THAT(split(4, {1e-308, 3e-308}), ElementsAre(1, 3));
  EXPECT_THAT(split(4, {1e300, 1e-300}), ElementsAre(4, 0));
  EXPECT_THAT(split(2147483647, {1, 0}), ElementsAre(2147483647, 0));
}

TEST(ApportionDeathTest, RefusesWhatIsNoProportion) {
  EXPECT_DEATH(split(4, {1, -1}), "a weight is a proportion");
  EXPECT_DEATH(split(4, {1, NAN}), "a weight is a proportion");
  EXPECT_DEATH(split(4, {}), "someone to take it");
}

RC_GTEST_PROP(ApportionProperty, AddsUpAndStaysWithinOneOfExact, ()) {
  const int total = *rc::gen::inRange(0, 100000);
  const auto integers = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000)));
  const std::vector<int> parts = apportion(total, integers);
  RC_ASSERT(parts.size() == integers.size());
  RC_ASSERT(std::accumulate(parts.begin(), parts.end(), 0) == total);
  const int sum = std::accumulate(integers.begin(), integers.end(), 0);
  for (size_t i = 0; i < parts.size(); ++i) {
    const double exact = sum > 0 ? double(total) * integers[i] / sum : double(total) / parts.size();
    RC_ASSERT(std::abs(parts[i] - exact) < 1 + 1e-6);
    RC_ASSERT(sum == 0 || integers[i] > 0 || parts[i] == 0);
  }
}

}  // namespace
}  // namespace remuda::balance
