#include "train/flat_layout.h"

#include <gtest/gtest.h>
#include <random>

namespace remuda::train {
namespace {

struct Random {
  explicit Random(unsigned seed) : engine(seed) {
    for (size_t i = 0, n = 1 + engine() % 30; i < n; ++i) {
      sizes.push_back(1 + engine() % 500);
      groups.push_back(engine() % 3);
    }
    for (size_t i = 0, n = 1 + engine() % 5; i < n; ++i) shares.push_back(engine() % 4);
    shares.back() += 1;
  }
  std::mt19937 engine;
  std::vector<size_t> sizes, groups;
  std::vector<double> shares;
};

TEST(FlatLayout, EveryElementHasOneOwnerAndItsGroup) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Random random(seed);
    const FlatLayout layout(random.sizes, random.groups, {4, 1000, random.shares});
    std::vector<size_t> group_at;
    for (size_t i = 0; i < random.sizes.size(); ++i) group_at.insert(group_at.end(), random.sizes[i], random.groups[i]);
    ASSERT_EQ(layout.count(), group_at.size());
    std::vector<int> owners(layout.count());
    size_t owned = 0;
    for (int rank = 0; rank < int(random.shares.size()); ++rank) {
      owned += layout.owned(rank);
      for (size_t bucket = 0; bucket < layout.buckets(); ++bucket) {
        size_t at = layout.own(bucket, rank).begin;
        for (const Piece& piece : layout.pieces(bucket, rank)) {
          EXPECT_EQ(piece.range.begin, at) << "pieces follow each other";
          at = piece.range.end;
          for (size_t i = piece.range.begin; i < piece.range.end; ++i) {
            ++owners[i];
            ASSERT_EQ(piece.group, group_at[i]);
          }
        }
        EXPECT_EQ(at, layout.own(bucket, rank).end);
      }
    }
    EXPECT_EQ(owned, layout.count());
    for (const int owner : owners) ASSERT_EQ(owner, 1);
  }
}

TEST(FlatLayout, BucketsHoldWholeParametersOfAboutTheirSize) {
  const std::vector<size_t> sizes{10, 200, 30, 40, 50, 400, 5}, groups(sizes.size());
  const FlatLayout layout(sizes, groups, {4, 4 * 100, {1}});
  ASSERT_EQ(layout.buckets(), 6u);
  EXPECT_EQ(layout.bucket(0), (comm::Chunk{0, 10}));
  EXPECT_EQ(layout.bucket(1), (comm::Chunk{10, 210})) << "larger than a bucket is to be, but whole";
  EXPECT_EQ(layout.bucket(2), (comm::Chunk{210, 280}));
  EXPECT_EQ(layout.bucket(3), (comm::Chunk{280, 330}));
  EXPECT_EQ(layout.bucket(4), (comm::Chunk{330, 730}));
  for (const auto& [parameter, bucket] : {std::pair{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {5, 4}, {6, 5}}) {
    EXPECT_EQ(layout.bucket_of(size_t(parameter)), size_t(bucket));
    EXPECT_EQ(layout.bucket_at(layout.offsets()[size_t(parameter)]), size_t(bucket));
    EXPECT_EQ(layout.bucket_at(layout.offsets()[size_t(parameter) + 1] - 1), size_t(bucket));
  }
}

// The bar: at most a share of the state + 5 %, for buckets that are not tiny.
TEST(FlatLayout, OwnersHaveTheirShareOfTheState) {
  const std::vector<size_t> sizes(40, 12345), groups(40);
  const std::vector<double> shares{24, 12, 80, 0};
  const FlatLayout layout(sizes, groups, {4, 1 << 20, shares});
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_LE(double(layout.owned(rank)), 1.05 * shares[size_t(rank)] / 116 * double(layout.count()));
  EXPECT_EQ(layout.owned(3), 0u);
}

}  // namespace
}  // namespace remuda::train
