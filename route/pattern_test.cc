#include "route/pattern.h"

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

#include "route/testing/networks.h"

namespace remuda::route {
namespace {

/// What a rank sends, in buffers.
double sent_by(const Pattern& pattern, size_t rank) {
  size_t chunks = 0;
  for (const Step& step : pattern.steps)
    for (const Move& move : step)
      if (move.from == rank) chunks += move.chunks();
  return static_cast<double>(chunks) / static_cast<double>(pattern.chunks);
}

double sent_by_all(const Pattern& pattern) {
  double sum = 0;
  for (size_t rank = 0; rank < pattern.ranks; ++rank) sum += sent_by(pattern, rank);
  return sum;
}

size_t rounded_log2(size_t number) {
  size_t log = 0;
  while (size_t{1} << log < number) ++log;
  return log;
}

class EachSize : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Pattern, EachSize, testing::Range<size_t>(2, 18));

TEST_P(EachSize, EveryValueReachesEveryRankOnce) {
  for (const auto& make : {ring, tree, doubling, halving, direct}) {
    const Pattern pattern = make(GetParam());
    EXPECT_TRUE(is_all_reduced(simulate(pattern))) << to_string(pattern.algorithm);
    EXPECT_EQ(std::reduce(pattern.groups.begin(), pattern.groups.end()), GetParam());
  }
  EXPECT_TRUE(is_all_reduced(simulate(two_rings(GetParam()))));
}

TEST_P(EachSize, EveryValueReachesEveryRankOnceAcrossIslands) {
  for (size_t first = 1; first < GetParam(); ++first) {
    EXPECT_TRUE(is_all_reduced(simulate(islands({first, GetParam() - first}))));
    EXPECT_TRUE(is_all_reduced(simulate(islands({first, 2, GetParam() - first}))));
  }
  for (size_t count = 2; count < 5; ++count)
    EXPECT_TRUE(is_all_reduced(simulate(island_rings(std::vector(count, GetParam() + 1)))));
}

TEST_P(EachSize, StepsAndBytesAreThoseOfTheBooks) {
  const size_t n = GetParam();
  const double least = 2.0 * static_cast<double>(n - 1) / static_cast<double>(n);
  for (const Pattern& pattern : {ring(n), direct(n)})
    for (size_t rank = 0; rank < n; ++rank) EXPECT_DOUBLE_EQ(sent_by(pattern, rank), least);
  EXPECT_EQ(ring(n).steps.size(), 2 * (n - 1));
  EXPECT_EQ(direct(n).steps.size(), 2U);
  EXPECT_EQ(tree(n).steps.size(), 2 * rounded_log2(n));
  EXPECT_DOUBLE_EQ(sent_by_all(tree(n)), 2.0 * static_cast<double>(n - 1));
  const bool is_power = (n & (n - 1)) == 0;
  EXPECT_EQ(doubling(n).steps.size(), rounded_log2(n) + (is_power ? 0 : 1));
  if (!is_power) return;
  EXPECT_EQ(halving(n).steps.size(), 2 * rounded_log2(n));
  for (size_t rank = 0; rank < n; ++rank) EXPECT_DOUBLE_EQ(sent_by(halving(n), rank), least);
}

TEST(Pattern, TwoRingsGoOppositeWays) {
  const Pattern pattern = two_rings(4);
  for (const Step& step : pattern.steps) {
    EXPECT_EQ(step.size(), 8U);
    for (const Move& move : step) {
      const bool forwards = move.begin < 4;
      EXPECT_EQ(move.to, (move.from + (forwards ? 1 : 3)) % 4);
    }
  }
}

TEST(Pattern, AcrossIslandsGoesWhatOneRankOfEachWouldSend) {
  for (const Pattern& pattern : {islands({4, 4}), islands({3, 5}), island_rings({4, 4})}) {
    const size_t first = pattern.groups.front();
    size_t across = 0;
    for (const Step& step : pattern.steps)
      for (const Move& move : step)
        if (move.from < first && move.to >= first) across += move.chunks();
    EXPECT_EQ(across, pattern.chunks);  // 2 (k-1)/k of the whole for k = 2 islands
  }
}

/// Else a rank could send what it has not got yet, or what it got twice.
TEST(Pattern, NoStepAddsAndCopiesInOnePlace) {
  for (const Pattern& pattern : {ring(5), two_rings(5), tree(6), halving(8), direct(5), islands({2, 3})})
    for (const Step& step : pattern.steps)
      EXPECT_TRUE(std::ranges::all_of(step, [&](const Move& move) { return move.adds == step.front().adds; }));
}

TEST(Pattern, RingsGoAroundIslandsOfOneSize) {
  EXPECT_DEATH(island_rings({3, 4}), "islands of one size");
  EXPECT_DEATH(islands({4}), "several islands");
}

}  // namespace
}  // namespace remuda::route
