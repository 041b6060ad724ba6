#include "compress/low_rank.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "compress/portable.h"

namespace remuda::compress {
namespace {

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = float(random() / 4294967296.0 - 0.5);
  return values;
}

/// A matrix of that rank.
std::vector<float> matrix_of(Shape shape, size_t rank, unsigned seed) {
  std::vector<float> matrix(shape.count());
  const auto left = random_values(shape.rows * rank, seed), right = random_values(shape.columns * rank, seed + 1);
  if (rank > 0) add_product(matrix, 1, left, right, rank);
  return matrix;
}

struct Sides {
  Shape shape;
  size_t rank;
  std::vector<float> left = std::vector<float>(shape.rows * rank), right = std::vector<float>(shape.columns * rank);

  Sides(Shape of, size_t vectors) : shape(of), rank(vectors) { begin(right, 7); }

  /// What is left of it.
  std::vector<float> take_from(std::vector<float> matrix) {
    project(matrix, right, rank, left);
    orthogonalize(left, rank);
    project_back(matrix, left, rank, right);
    add_product(matrix, -1, left, right, rank);
    return matrix;
  }
  double left_dot(size_t a, size_t b) const {
    const auto side = std::span<const float>(left);
    return dot(side.subspan(a * shape.rows, shape.rows), side.subspan(b * shape.rows, shape.rows));
  }
};

double length_of(const std::vector<float>& values) { return std::sqrt(dot(values, values)); }

constexpr Shape kShapes[] = {{100, 33}, {7, 300}, {65, 64}, {8, 8}};

TEST(LowRank, SidesAreSmallerThanTheMatrixOrThereAreNone) {
  EXPECT_EQ(rank_of({1000, 100}, 4), 4u);
  EXPECT_EQ(rank_of({16, 16}, 4), 0u) << "2 x 4 x 32 are as many";
  EXPECT_EQ(rank_of({17, 17}, 4), 4u);
  EXPECT_EQ(rank_of({100000, 1}, 4), 0u) << "a vector";
  EXPECT_EQ(rank_of({0, 5}, 4), 0u);
  EXPECT_EQ(rank_of({5, 3}, 9), 0u);
}

TEST(LowRank, AMatrixOfNoHigherRankIsTakenWhole) {
  for (const Shape& shape : kShapes)
    for (const size_t rank : {0, 1, 3, 4}) {
      const auto matrix = matrix_of(shape, rank, unsigned(rank));
      Sides sides(shape, 4);
      EXPECT_LE(length_of(sides.take_from(matrix)), 2e-6 * length_of(matrix)) << shape.rows << " " << rank;
    }
}

TEST(LowRank, VectorsOfTheLeftSideAreOrthonormalOrNothing) {
  for (const Shape& shape : kShapes)
    for (const size_t rank : {2, 8}) {
      Sides sides(shape, 5);
      sides.take_from(matrix_of(shape, rank, 3));
      for (size_t a = 0; a < 5; ++a) {
        EXPECT_NEAR(sides.left_dot(a, a), a < rank ? 1 : 0, 1e-6) << shape.rows << " " << rank << " " << a;
        for (size_t b = 0; b < a; ++b) EXPECT_NEAR(sides.left_dot(a, b), 0, 1e-6);
      }
    }
}

/// Nearly dependent ones need the second pass.
TEST(LowRank, NearlyDependentVectorsComeOutOrthogonal) {
  std::vector<float> left = random_values(300, 1);
  for (size_t i = 0; i < 100; ++i) left[100 + i] = left[i] * (1 + (i % 7 == 0) * 1e-4f);
  orthogonalize(left, 3);
  const auto side = std::span<const float>(left);
  for (size_t a = 0; a < 3; ++a)
    for (size_t b = 0; b < a; ++b)
      EXPECT_NEAR(dot(side.subspan(100 * a, 100), side.subspan(100 * b, 100)), 0, 1e-6) << a << b;
}

/// From one time to the next, as the power iteration has it.
TEST(LowRank, FindsWhatIsLargestOfAMatrix) {
  const Shape shape{60, 50};
  auto matrix = matrix_of(shape, 2, 5);
  const double large = length_of(matrix);
  add_scaled(matrix, 0.01f, matrix_of(shape, 40, 6));
  Sides sides(shape, 2);
  double left = 0;
  for (int time = 0; time < 5; ++time) {
    left = length_of(sides.take_from(matrix));
    renew(sides.right, 2, 1);
  }
  EXPECT_LT(left, 0.05 * large);
  EXPECT_GT(left, 0);
}

/// A gradient may be nothing for a while: the sides must find it once it is something.
TEST(LowRank, SidesThatFoundNothingBeginAnew) {
  const Shape shape{40, 40};
  Sides sides(shape, 2);
  sides.take_from(std::vector<float>(shape.count()));
  EXPECT_EQ(length_of(sides.right), 0);
  renew(sides.right, 2, 1);
  const auto matrix = matrix_of(shape, 2, 9);
  EXPECT_LE(length_of(sides.take_from(matrix)), 2e-6 * length_of(matrix));
}

TEST(LowRank, SizesDoNotGrowFromOneTimeToTheNext) {
  auto matrix = matrix_of({40, 40}, 2, 9);
  for (float& value : matrix) value *= 1e15f;
  Sides sides({40, 40}, 2);
  for (int time = 0; time < 20; ++time) {
    EXPECT_LE(length_of(sides.take_from(matrix)), 2e-6 * length_of(matrix)) << time;
    renew(sides.right, 2, 1);
    EXPECT_NEAR(length_of(sides.right), std::sqrt(2), 1e-5);
  }
}

}  // namespace
}  // namespace remuda::compress
