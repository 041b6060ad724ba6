#include "measure/paired.h"

#include <gtest/gtest.h>
#include <vector>

namespace remuda::measure {
namespace {

// R: qt(0.975, df), and qt(0.95, 4).
TEST(StudentT, IsThatOfTheTables) {
  EXPECT_NEAR(student_t(0.975, 1), 12.706205, 1e-6);
  EXPECT_NEAR(student_t(0.975, 2), 4.302653, 1e-6);
  EXPECT_NEAR(student_t(0.975, 3), 3.182446, 1e-6);
  EXPECT_NEAR(student_t(0.975, 4), 2.776445, 1e-6);
  EXPECT_NEAR(student_t(0.975, 9), 2.262157, 1e-6);
  EXPECT_NEAR(student_t(0.975, 30), 2.042272, 1e-6);
  EXPECT_NEAR(student_t(0.975, 99), 1.984217, 1e-6);
  EXPECT_NEAR(student_t(0.95, 4), 2.131847, 1e-6);
  EXPECT_NEAR(student_t(0.5, 7), 0, 1e-6);
}

// R: t.test(c(11, 13, 12) - c(10, 10, 10)): mean 2, 95 percent -0.4841377 to 4.4841377.
TEST(PairedDifference, HasTheIntervalOfStudentsTest) {
  const std::vector<double> a{10, 10, 10}, b{11, 13, 12};
  const auto found = paired_difference(a, b, 0.95);
  EXPECT_DOUBLE_EQ(found.mean_a, 10);
  EXPECT_DOUBLE_EQ(found.mean_b, 12);
  EXPECT_DOUBLE_EQ(found.mean, 2);
  EXPECT_NEAR(found.low, -0.4841377, 1e-6);
  EXPECT_NEAR(found.high, 4.4841377, 1e-6);
  EXPECT_FALSE(found.is_real());
  EXPECT_TRUE(paired_difference(a, b, 0.8).is_real());
}

TEST(PairedDifference, TakesTheNoiseThatBothOfAPairHaveOut) {
  const std::vector<double> a{10, 20, 30}, b{11, 21.1, 30.9};
  const auto found = paired_difference(a, b, 0.95);
  EXPECT_TRUE(found.is_real()) << "each is about 1 more, whatever the pair";
  EXPECT_GT(found.low, 0.7);
  EXPECT_LT(found.high, 1.3);
}

TEST(PairedRatio, IsTheFactorWhateverTheSize) {
  const std::vector<double> a{10, 200, 3000}, b{11, 221, 3290};
  const auto found = paired_ratio(a, b, 0.95);
  EXPECT_DOUBLE_EQ(found.mean_a, 1070);
  EXPECT_NEAR(found.mean, 0.1, 0.002);
  EXPECT_TRUE(found.is_real());
  const std::vector<double> wild{1, 10}, tame{10, 1};
  EXPECT_GT(paired_ratio(wild, tame, 0.95).low, -1) << "nothing is slower than standing still";
}

TEST(PairedDifference, IsAPointWhereAllPairsAgree) {
  const std::vector<double> a{1, 2}, more{2, 3};
  EXPECT_TRUE(paired_difference(a, more, 0.95).is_real());
  EXPECT_FALSE(paired_difference(a, a, 0.95).is_real());
}

}  // namespace
}  // namespace remuda::measure
