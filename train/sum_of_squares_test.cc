#include "train/sum_of_squares.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace remuda::train {
namespace {

TEST(SumOfSquares, IsRightToAMillionth) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const size_t count : {0, 1, 31, 32, 33, 4095, 4096, 4097, 100003}) {
    std::vector<float> values(count);
    double expected = 0;
    for (float& value : values) {
      value = normal(random);
      expected += double(value) * value;
    }
    EXPECT_NEAR(sum_of_squares(values), expected, 1e-6 * expected) << count;
  }
}

TEST(SumOfSquares, IsFiniteForEveryFiniteFloat) {
  const std::vector<float> values(5000, std::numeric_limits<float>::max());
  const double each = std::numeric_limits<float>::max();
  EXPECT_NEAR(sum_of_squares(values) / (5000 * each * each), 1, 1e-12);
}

TEST(SumOfSquares, IsNotFiniteWhereAnyValueIsNot) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")})
    for (const size_t at : {0, 100, 4999}) {
      std::vector<float> values(5000, 1.0f);
      values[at] = bad;
      EXPECT_FALSE(std::isfinite(sum_of_squares(values))) << at;
    }
}

}  // namespace
}  // namespace remuda::train
