#include "train/flat_layout.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace remuda::train {
namespace {

/// Any layout: parameters with and without elements, of any alignment, some of them in blocks.
struct Random {
  explicit Random(unsigned seed) : engine(seed) {
    for (size_t i = 0, n = 1 + engine() % 30; i < n; ++i) {
      sizes.push_back(engine() % 10 == 0 ? 0 : 1 + engine() % (engine() % 2 == 0 ? 500 : 20));
      groups.push_back(engine() % 3);
    }
    options.element_bytes = size_t{2} << (engine() % 3);
    options.bucket_bytes = 1000;
    for (size_t i = 0, n = 1 + engine() % 5; i < n; ++i) options.state_shares.push_back(engine() % 4);
    options.state_shares.back() += 1;
    options.equal_parts = engine() % 4 == 0;
    for (size_t left = sizes.size(); engine() % 2 == 0 && left > 1; left -= options.blocks.back())
      options.blocks.push_back(1 + engine() % (left - 1));
  }
  int ranks() const { return int(options.state_shares.size()); }

  std::mt19937 engine;
  std::vector<size_t> sizes, groups;
  FlatLayout::Options options;
};

TEST(FlatLayout, EveryElementHasOneOwnerAndItsGroupAndPaddingIsOfNoPiece) {
  constexpr size_t kPadding = SIZE_MAX;
  size_t padded = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Random random(seed);
    const FlatLayout layout(random.sizes, random.groups, random.options);
    std::vector<size_t> group_at(layout.extent(), kPadding);
    for (size_t i = 0; i < layout.parameters(); ++i)
      for (size_t element = 0; element < random.sizes[i]; ++element)
        group_at.at(layout.offset(i) + element) = random.groups[i];
    padded += size_t(std::ranges::count(group_at, kPadding));
    std::vector<int> owners(layout.extent());
    size_t owned = 0;
    for (int rank = 0; rank < random.ranks(); ++rank) {
      owned += layout.owned(rank);
      size_t in_pieces = 0;
      for (size_t bucket = 0; bucket < layout.buckets(); ++bucket) {
        size_t at = layout.own(bucket, rank).begin;
        for (const Piece& piece : layout.pieces(bucket, rank)) {
          EXPECT_LE(at, piece.range.begin) << "pieces follow each other";
          EXPECT_LT(piece.range.begin, piece.range.end);
          at = piece.range.end;
          in_pieces += piece.range.size();
          for (size_t i = piece.range.begin; i < piece.range.end; ++i) {
            ++owners[i];
            ASSERT_EQ(piece.group, group_at[i]);
          }
        }
        EXPECT_LE(at, layout.own(bucket, rank).end);
      }
      EXPECT_EQ(in_pieces, layout.owned(rank));
    }
    EXPECT_EQ(owned, layout.count());
    EXPECT_EQ(layout.count(), std::accumulate(random.sizes.begin(), random.sizes.end(), size_t{0}));
    for (size_t i = 0; i < owners.size(); ++i) ASSERT_EQ(owners[i], group_at[i] == kPadding ? 0 : 1);
  }
  EXPECT_GT(padded, 0u);
}

TEST(FlatLayout, WhatARankOwnsOfAParameterIsItsPartOfTheBucket) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Random random(seed);
    const FlatLayout layout(random.sizes, random.groups, random.options);
    for (size_t i = 0; i < layout.parameters(); ++i) {
      size_t at = layout.offset(i);
      for (int rank = 0; rank < random.ranks(); ++rank) {
        const comm::Chunk own = layout.own_of(i, rank), of_bucket = layout.own(layout.bucket_of(i), rank);
        if (own.size() == 0) continue;
        EXPECT_EQ(own.begin, at);
        EXPECT_GE(own.begin, of_bucket.begin);
        EXPECT_LE(own.end, of_bucket.end);
        at = own.end;
      }
      EXPECT_EQ(at, layout.offset(i) + layout.size(i));
    }
  }
}

TEST(FlatLayout, ParametersAndPartsBeginAtCacheLines) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Random random(seed);
    const FlatLayout layout(random.sizes, random.groups, random.options);
    const auto at_line = [&](size_t element) { return element * random.options.element_bytes % 64 == 0; };
    for (size_t i = 0; i < layout.parameters(); ++i) {
      EXPECT_TRUE(at_line(layout.offset(i)));
      EXPECT_EQ(layout.size(i), random.sizes[i]);
      EXPECT_GE(layout.offset(i), layout.bucket(layout.bucket_of(i)).begin);
      EXPECT_LE(layout.offset(i) + layout.size(i), layout.bucket(layout.bucket_of(i)).end);
      if (i > 0) {
        EXPECT_GE(layout.offset(i), layout.offset(i - 1) + layout.size(i - 1));
      }
    }
    size_t end = 0;
    for (size_t bucket = 0; bucket < layout.buckets(); ++bucket) {
      EXPECT_EQ(layout.bucket(bucket).begin, std::exchange(end, layout.bucket(bucket).end));
      for (int rank = 0; rank < random.ranks(); ++rank) EXPECT_TRUE(at_line(layout.own(bucket, rank).begin));
    }
    EXPECT_EQ(end, layout.extent());
  }
}

TEST(FlatLayout, EqualSharesCanBePartsOfOneSize) {
  const std::vector<size_t> sizes{10, 100, 30, 70}, groups(sizes.size());
  for (const bool equal : {false, true}) {
    const FlatLayout layout(sizes, groups,
                            {.bucket_bytes = 4 * 150, .state_shares = {2, 2, 2}, .blocks = {1}, .equal_parts = equal});
    ASSERT_EQ(layout.buckets(), 3u);
    for (size_t bucket = 0; bucket < layout.buckets(); ++bucket)
      EXPECT_EQ(layout.parts(bucket).are_equal(), equal) << bucket;
  }
  const FlatLayout unlike(sizes, groups, {.bucket_bytes = 4 * 150, .state_shares = {3, 1}, .equal_parts = true});
  EXPECT_FALSE(unlike.parts(0).are_equal());
}

TEST(FlatLayout, ParametersOfABlockAreFoundFromItsStart) {
  const std::vector<size_t> sizes{7, 100, 3, 20, 5}, groups(sizes.size());
  const FlatLayout layout(sizes, groups, {.state_shares = {1}, .blocks = {2, 2}});
  EXPECT_EQ(layout.whole_parameters(), 1u);
  EXPECT_EQ(layout.whole_extent(), 16u);
  EXPECT_EQ(layout.offsets_in_block(0), (std::vector<size_t>{0, 112}));
  EXPECT_EQ(layout.offsets_in_block(1), (std::vector<size_t>{0, 32}));
  EXPECT_EQ(layout.bucket(layout.bucket_of_block(1)), (comm::Chunk{144, 192}));
}

TEST(FlatLayout, BucketsHoldWholeParametersOfAboutTheirSize) {
  const std::vector<size_t> sizes{10, 200, 30, 40, 50, 400, 5}, groups(sizes.size());
  const FlatLayout layout(sizes, groups, {4, 4 * 100, {1}});
  ASSERT_EQ(layout.buckets(), 6u);
  EXPECT_EQ(layout.bucket(0), (comm::Chunk{0, 16}));
  EXPECT_EQ(layout.bucket(1), (comm::Chunk{16, 224})) << "larger than a bucket is to be, but whole";
  EXPECT_EQ(layout.bucket(2), (comm::Chunk{224, 304}));
  EXPECT_EQ(layout.bucket(3), (comm::Chunk{304, 368}));
  EXPECT_EQ(layout.bucket(4), (comm::Chunk{368, 768}));
  for (const auto& [parameter, bucket] : {std::pair{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {5, 4}, {6, 5}}) {
    EXPECT_EQ(layout.bucket_of(size_t(parameter)), size_t(bucket));
    EXPECT_EQ(layout.bucket_at(layout.offset(size_t(parameter))), size_t(bucket));
    EXPECT_EQ(layout.bucket_at(layout.offset(size_t(parameter)) + sizes[size_t(parameter)] - 1), size_t(bucket));
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
