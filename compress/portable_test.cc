#include "compress/portable.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace remuda::compress {
namespace {

constexpr size_t kMany = 999;

std::vector<float> some_of(std::mt19937& random) {
  std::vector<float> values(kMany);
  for (float& value : values) value = float(random() / 4294967296.0 - 0.5);
  return values;
}

TEST(Portable, DotsAreInDouble) {
  std::mt19937 random(1);
  auto a = some_of(random), b = some_of(random);
  a[3] = b[3] = 1e25f;
  a[998] = 1e20f;
  double expected = 0;
  for (size_t i = 0; i < kMany; ++i) expected += double(a[i]) * double(b[i]);
  EXPECT_NEAR(dot(a, b), expected, 1e-12 * expected);
  EXPECT_EQ(dot(std::vector<float>(), std::vector<float>()), 0);
}

TEST(Portable, TakesTheStepsOfSgd) {
  std::mt19937 random(2);
  std::vector<float> values = some_of(random), momentum(kMany);
  std::vector<double> expected(values.begin(), values.end()), kept(kMany);
  for (int step = 0; step < 20; ++step) {
    const auto gradient = some_of(random);
    descend(MomentumStep{.keep = 0.9f, .take = 0.5f, .decay = 0.01f, .rate = 0.1f}, values, momentum, gradient);
    for (size_t i = 0; i < kMany; ++i) {
      kept[i] = 0.9 * kept[i] + 0.5 * double(gradient[i]) + 0.01 * expected[i];
      expected[i] -= 0.1 * kept[i];
    }
  }
  for (size_t i = 0; i < kMany; ++i) ASSERT_NEAR(values[i], expected[i], 1e-5) << i;
}

TEST(Portable, TakesTheStepsOfAdamW) {
  std::mt19937 random(3);
  std::vector<float> values = some_of(random), mean(kMany), square(kMany);
  std::vector<double> expected(values.begin(), values.end()), first(kMany), second(kMany);
  for (int step = 0; step < 20; ++step) {
    const auto gradient = some_of(random);
    descend(AdamStep{.keep_mean = 0.9f,
                     .take = 0.05f,
                     .keep_square = 0.99f,
                     .take_square = 0.0025f,
                     .keep = 0.999f,
                     .rate = 0.01f,
                     .epsilon = 1e-3f},
            values, mean, square, gradient);
    for (size_t i = 0; i < kMany; ++i) {
      first[i] = 0.9 * first[i] + 0.05 * double(gradient[i]);
      second[i] = 0.99 * second[i] + 0.0025 * double(gradient[i]) * double(gradient[i]);
      expected[i] = 0.999 * expected[i] - 0.01 * first[i] / (std::sqrt(second[i]) + 1e-3);
    }
  }
  for (size_t i = 0; i < kMany; ++i) ASSERT_NEAR(values[i], expected[i], 1e-5) << i;
}

}  // namespace
}  // namespace remuda::compress
