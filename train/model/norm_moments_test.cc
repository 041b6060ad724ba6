#include "train/model/norm_moments.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace remuda::train {
namespace {

/// Of one channel.
std::vector<double> moments_of(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / double(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {double(values.size()), values.empty() ? 0 : mean, squares};
}

std::vector<double> combined(const std::vector<double>& parts, size_t channels) {
  std::vector<double> all(moments_size(channels), -1);
  combine_moments(parts, all);
  return all;
}

TEST(NormMoments, OfPartsAreThoseOfTheWhole) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(1e6, 1e-2);  // where the mean of squares less the square of the mean is noise
  for (const std::vector<int>& sizes : {std::vector{5, 3, 9}, {1, 0, 30}, {0, 0, 2}, {1, 1, 1}, {17, 0, 0}}) {
    std::vector<double> whole, parts;
    for (const int size : sizes) {
      std::vector<double> part(size_t(size), 0.0);
      for (double& value : part) value = normal(random);
      const auto moments = moments_of(part);
      parts.insert(parts.end(), moments.begin(), moments.end());
      whole.insert(whole.end(), part.begin(), part.end());
    }
    const auto expected = moments_of(whole), all = combined(parts, 1);
    EXPECT_EQ(all[0], expected[0]);
    EXPECT_NEAR(all[1] / expected[1], 1, 1e-14);
    EXPECT_NEAR(all[2], expected[2], 1e-6 * expected[2]);
  }
}

TEST(NormMoments, EachChannelHasItsOwn) {
  // counts 2 and 1; means (1, 10) and (4, 10); squares (2, 0) and (0, 0)
  const auto all = combined({2, 1, 10, 2, 0, 1, 4, 10, 0, 0}, 2);
  EXPECT_EQ(all, (std::vector<double>{3, 2, 10, 8, 0}));
}

TEST(NormMoments, OfNothingAreNothing) { EXPECT_EQ(combined({0, 0, 0, 0, 0, 0}, 1), (std::vector<double>{0, 0, 0})); }

}  // namespace
}  // namespace remuda::train
