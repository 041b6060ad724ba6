#include "compress/frozen_adam.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "compress/portable.h"

namespace remuda::compress {
namespace {

TEST(FrozenAdam, AParameterWithoutVarianceStaysAsItIs) {
  std::vector<float> root{0, 4e-4f}, none{2e-17f, 3e-17f};
  invert_root(root, 0.25, 1e-8);
  EXPECT_EQ(root[0], 0);
  invert_root(none, 0.25, 1e-8);
  EXPECT_EQ(none[0], 0) << "its root is 0.9e-8";
  EXPECT_GT(none[1], 0) << "1.1e-8";
  EXPECT_FLOAT_EQ(root[1], float(1 / (0.04 + 1e-8)));
  std::vector<float> direction{3, 3}, values{5, 5};
  divide(direction, root);
  EXPECT_EQ(direction[0], 0);
  add_step(direction, 1, std::vector<float>{0, 0}, 1, std::vector<float>{2, 2}, root);
  EXPECT_EQ(direction[0], 0);
  descend(values, 1, 0.5, direction);
  EXPECT_EQ(values[0], 5);
  EXPECT_FLOAT_EQ(values[1], 5 - 0.5f * (75 + 50));
}

/// Nothing is packed here: the steps are those of Adam itself with a constant variance.
TEST(FrozenAdam, TakesTheStepsOfAdam) {
  constexpr size_t kCount = 1000;
  constexpr double kKeep = 0.9, kDecay = 0.01, kRate = 1e-3, kEpsilon = 1e-8;
  std::mt19937 random(2);
  const auto some = [&] {
    std::vector<float> values(kCount);
    for (float& value : values) value = float(random() / 4294967296.0 - 0.5);
    return values;
  };
  std::vector<float> values = some(), direction = some(), root = some();
  for (float& value : root) value *= value;
  std::vector<double> expected(values.begin(), values.end()), momentum(direction.begin(), direction.end());
  const std::vector<double> variance(root.begin(), root.end());
  invert_root(root, 1, kEpsilon);
  divide(direction, root);
  for (int step = 1; step <= 50; ++step) {
    const std::vector<float> gradient = some();
    std::vector<float> next(kCount);
    add_step(next, float(kKeep), direction, float(1 - kKeep), gradient, root);
    direction = next;
    descend(values, float(1 - kRate * kDecay), float(kRate), direction);
    for (size_t i = 0; i < kCount; ++i) {
      momentum[i] = kKeep * momentum[i] + (1 - kKeep) * double(gradient[i]);
      expected[i] = (1 - kRate * kDecay) * expected[i] - kRate * momentum[i] / (std::sqrt(variance[i]) + kEpsilon);
    }
  }
  for (size_t i = 0; i < kCount; ++i) {
    const double moved = std::abs(expected[i]) + 50 * kRate / std::sqrt(variance[i]);
    ASSERT_NEAR(values[i], expected[i], 1e-5 * moved) << i;
  }
}

}  // namespace
}  // namespace remuda::compress
