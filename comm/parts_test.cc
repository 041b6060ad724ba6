#include "comm/parts.h"

#include <gtest/gtest.h>
#include <random>

namespace remuda::comm {
namespace {

void expect_covers(const Parts& parts, size_t count, size_t element_bytes) {
  size_t at = 0;
  for (int rank = 0; rank < parts.ranks(); ++rank) {
    const Chunk chunk = parts.of(rank);
    EXPECT_EQ(chunk.begin, at) << count << " over " << parts.ranks();
    EXPECT_GE(chunk.end, chunk.begin);
    EXPECT_TRUE(chunk.begin == count || chunk.begin * element_bytes % kCacheLine == 0);
    at = chunk.end;
  }
  EXPECT_EQ(at, count);
  EXPECT_EQ(parts.count(), count);
}

constexpr size_t kCounts[] = {0, 1, 7, 15, 16, 17, 100, 255, 256, 257, 4097};

TEST(EvenParts, CoverEachElementOnceInWholeCacheLines) {
  for (int ranks = 1; ranks <= 17; ++ranks)
    for (const size_t bytes : {4, 8})
      for (const size_t count : kCounts) expect_covers(even_parts(ranks, count, bytes), count, bytes);
}

TEST(EvenParts, AreAsEvenAsCacheLinesGo) {
  for (int ranks = 1; ranks <= 17; ++ranks)
    for (int rank = 0; rank < ranks; ++rank) {
      const size_t lines = even_parts(ranks, 16000, 4).of(rank).size() / 16;
      EXPECT_GE(lines, 1000u / ranks);
      EXPECT_LE(lines, 1000u / ranks + 1);
    }
}

TEST(PartsBy, AreInProportionToWithinALine) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> weights(1 + random() % 6);
    double total = 0;
    for (double& weight : weights) total += weight = random() % 5 + (&weight == &weights[0] ? 1 : 0);
    const size_t count = random() % 100000;
    const Parts parts = parts_by(weights, count, 4);
    expect_covers(parts, count, 4);
    for (size_t rank = 0; rank < weights.size(); ++rank)
      EXPECT_NEAR(double(parts.of(int(rank)).size()), double(count) * weights[rank] / total, 2 * 16);
  }
}

TEST(PartsBy, GiveNothingToAWeightOfZero) {
  const std::vector<double> weights{0, 1, 0, 3, 0};
  const Parts parts = parts_by(weights, 1000, 8);
  for (const int rank : {0, 2, 4}) EXPECT_EQ(parts.of(rank).size(), 0u);
}

TEST(Parts, OfOtherEndsHaveOtherDigests) {
  EXPECT_EQ(Parts({3, 10}).digest(), Parts({3, 10}).digest());
  EXPECT_NE(Parts({3, 10}).digest(), Parts({4, 10}).digest());
  EXPECT_NE(Parts({3, 10}).digest(), Parts({3, 10, 10}).digest());
}

TEST(Parts, AreEqualWhereAllAreOfOneSize) {
  EXPECT_TRUE(Parts({16, 32, 48}).are_equal());
  EXPECT_TRUE(Parts({7}).are_equal());
  EXPECT_TRUE(Parts().are_equal());
  EXPECT_FALSE(Parts({16, 32, 47}).are_equal());
  EXPECT_FALSE(Parts({0, 16}).are_equal());
}

}  // namespace
}  // namespace remuda::comm
