#include "data/shuffle.h"

#include <gmock/gmock.h>
#include <numeric>
#include <rapidcheck/gtest.h>
#include <vector>

namespace remuda::data {
namespace {

using testing::ElementsAre;

std::vector<uint64_t> order(uint64_t size, uint64_t seed, uint64_t epoch) {
  const Shuffle shuffle(size, seed, epoch);
  std::vector<uint64_t> order(size);
  for (uint64_t i = 0; i < size; ++i) order[i] = shuffle[i];
  return order;
}

bool is_permutation(std::vector<uint64_t> order) {
  std::vector<bool> seen(order.size());
  for (const uint64_t element : order) {
    if (element >= order.size() || seen[element]) return false;
    seen[element] = true;
  }
  return true;
}

TEST(Shuffle, IsABijectionForEverySmallSize) {
  for (uint64_t size = 0; size <= 600; ++size) EXPECT_TRUE(is_permutation(order(size, 7, size))) << size;
}

RC_GTEST_PROP(ShuffleProperty, IsABijection, ()) {
  const auto size = *rc::gen::inRange<uint64_t>(1, 20000);
  RC_ASSERT(is_permutation(order(size, *rc::gen::arbitrary<uint64_t>(), *rc::gen::arbitrary<uint64_t>())));
}

TEST(Shuffle, IsTheSameForTheSameKey) { EXPECT_EQ(order(1000, 3, 4), order(1000, 3, 4)); }

TEST(Shuffle, NeverChangesWithoutNotice) {
  EXPECT_THAT(order(10, 0, 0), ElementsAre(9, 5, 8, 0, 2, 6, 3, 7, 4, 1));
  EXPECT_THAT(order(10, 42, 1), ElementsAre(8, 4, 1, 7, 2, 5, 3, 0, 6, 9));
  const Shuffle large(60000, 1, 2);
  EXPECT_THAT((std::vector{large[0], large[1], large[59999]}), ElementsAre(25747, 26519, 55444));
  const Shuffle huge(uint64_t{1} << 50, 1, 2);
  EXPECT_THAT((std::vector{huge[0], huge[1]}), ElementsAre(391039313159146, 824431483516773));
}

TEST(Shuffle, DiffersByEpochAndSeed) {
  const auto first = order(10000, 1, 1);
  for (const auto& other : {order(10000, 1, 2), order(10000, 2, 1), order(10000, 1, 0), order(10000, 0, 1)}) {
    int same = 0;
    for (size_t i = 0; i < first.size(); ++i) same += first[i] == other[i];
    EXPECT_LT(same, 10);  // one is expected by chance
  }
}

/// Chi-square of `counts` against an even spread.
double chi_square(const std::vector<int>& counts) {
  const double expected = std::accumulate(counts.begin(), counts.end(), 0.0) / counts.size();
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// 99 degrees of freedom: the 0.1 % and 99.9 % points of chi-square are 60 and 149.
TEST(Shuffle, SpreadsItsFirstElementsEvenly) {
  const Shuffle shuffle(60000, 5, 0);
  std::vector<int> counts(100);
  for (int i = 0; i < 5000; ++i) ++counts[shuffle[i] / 600];
  EXPECT_GT(chi_square(counts), 55);
  EXPECT_LT(chi_square(counts), 149);
}

TEST(Shuffle, PutsAnyElementFirstOverTheEpochs) {
  std::vector<int> counts(100);
  for (int epoch = 0; epoch < 10000; ++epoch) ++counts[Shuffle(100, 9, epoch)[0]];
  EXPECT_GT(chi_square(counts), 60);
  EXPECT_LT(chi_square(counts), 149);
}

TEST(Shuffle, BreaksUpNeighbours) {
  const auto shuffled = order(10000, 11, 0);
  int neighbours = 0;
  for (size_t i = 1; i < shuffled.size(); ++i) neighbours += shuffled[i] == shuffled[i - 1] + 1;
  EXPECT_LT(neighbours, 10);  // one is expected by chance
}

TEST(ShuffleDeathTest, KnowsItsSize) {
  const Shuffle shuffle(10, 0, 0);
  EXPECT_EQ(shuffle.size(), 10u);
  EXPECT_DEATH(shuffle[10], "the position is in the order");
}

}  // namespace
}  // namespace remuda::data
