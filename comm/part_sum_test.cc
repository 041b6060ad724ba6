#include "comm/part_sum.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "comm/testing/transport_suite.h"

namespace remuda::comm {
namespace {

/// Rank `mine` of several, and what the others have still to send to it.
class Sum {
 public:
  Sum(int mine, int ranks, size_t count, std::vector<size_t> cuts = {}, const std::vector<bool>& silent = {}) {
    for (int rank = 0; rank < ranks; ++rank) sent_.push_back(values_of<float>(rank, count));
    own_ = sent_[size_t(mine)];
    Pieces<std::byte> places;
    cuts.push_back(count);
    size_t begin = 0;
    for (const size_t cut : cuts) {
      places.add(std::as_writable_bytes(std::span(own_).subspan(begin, cut - begin)));
      begin = cut;
    }
    at_.resize(sent_.size());
    sum_.begin(mine, ranks, Element::float32, std::move(places), nullptr, silent);
  }
  /// Up to `bytes` of rank `rank`'s values arrive; how many did.
  size_t arrive(int rank, size_t bytes) {
    const auto room = sum_.room(rank);
    bytes = std::min(bytes, room.size());
    std::memcpy(room.data(), reinterpret_cast<const std::byte*>(sent_[rank].data()) + at_[rank], bytes);
    at_[rank] += bytes;
    sum_.take(rank, bytes);
    return bytes;
  }
  PartSum& sum() { return sum_; }
  const std::vector<float>& own() const { return own_; }

 private:
  std::vector<std::vector<float>> sent_;
  std::vector<size_t> at_;
  std::vector<float> own_;
  PartSum sum_;
};

TEST(PartSum, AddsInTheOrderOfTheRanksHoweverTheValuesArrive) {
  std::mt19937 random(3);
  for (const int mine : {0, 1, 3})
    for (const size_t count : {0, 1, 1000, 16384, 300001}) {
      Sum sum(mine, 4, count, {count / 3, count / 2});
      while (sum.sum().done() < count * sizeof(float)) {
        const int rank = static_cast<int>(random() % 4);
        if (rank != mine) sum.arrive(rank, random() % 100000);
      }
      EXPECT_EQ(sum.own(), sum_by_rank_order<float>(4, count)) << count << " values of rank " << mine;
    }
}

TEST(PartSum, OfSilentRanksNothingIsReadOrWaitedFor) {
  constexpr size_t kCount = 100000;
  for (const int mine : {0, 2}) {
    Sum sum(mine, 4, kCount, {}, {true, false, true, false});  // rank 0 and rank 2: all that is theirs is ignored
    EXPECT_EQ(sum.sum().left(2 - mine), 0U);
    while (sum.sum().done() < kCount * sizeof(float))
      for (const int rank : {1, 3}) sum.arrive(rank, kCount);
    std::vector<float> expected = values_of<float>(1, kCount);
    const std::vector<float> last = values_of<float>(3, kCount);
    for (size_t i = 0; i < kCount; ++i) expected[i] += last[i];
    EXPECT_EQ(sum.own(), expected) << mine;
  }
  const Sum nobody(0, 2, 100, {}, {true, true});
  EXPECT_EQ(nobody.own(), std::vector<float>(100, 0));
}

TEST(PartSum, ARankThatIsAheadWaitsForTheOthersAndNoLonger) {
  Sum sum(0, 3, 1 << 20);
  size_t ahead = 0;
  while (const size_t got = sum.arrive(1, 1 << 20)) ahead += got;
  EXPECT_GT(ahead, 0u);
  EXPECT_LT(ahead, size_t(1) << 20);
  EXPECT_EQ(sum.sum().done(), 0u);
  EXPECT_GT(sum.arrive(2, 100 << 10), 0u);
  EXPECT_GT(sum.sum().done(), 0u) << "what all have sent is added up before the rest is there";
  EXPECT_GT(sum.arrive(1, 1), 0u);
}

TEST(PartSum, OfHalvesGoesElsewhereAsFloat32) {
  std::vector<BFloat16> own{{0x3f80}, {0xc000}}, theirs{{0x4040}, {0x3f80}};  // 1, -2; 3, 1
  std::vector<float> to(2);
  PartSum sum;
  sum.begin(0, 2, Element::bfloat16, std::as_writable_bytes(std::span(own)),
            std::as_writable_bytes(std::span(to)).data());
  for (size_t byte = 0; byte < 4; ++byte) {  // an element arrives in two steps
    ASSERT_EQ(sum.left(1), 4 - byte);
    sum.room(1)[0] = std::as_bytes(std::span(theirs))[byte];
    sum.take(1, 1);
  }
  EXPECT_EQ(sum.done(), 4u);
  EXPECT_EQ(to, (std::vector<float>{4, -1}));
}

TEST(PartSum, CountsWhatIsStillToCome) {
  Sum sum(1, 2, 10);
  EXPECT_EQ(sum.sum().left(0), 40u);
  sum.arrive(0, 15);
  EXPECT_EQ(sum.sum().left(0), 25u);
  EXPECT_EQ(sum.sum().left(1), 0u);
  sum.arrive(0, 25);
  EXPECT_EQ(sum.sum().left(0), 0u);
  EXPECT_TRUE(sum.sum().room(0).empty());
  EXPECT_EQ(sum.own(), sum_by_rank_order<float>(2, 10));
}

}  // namespace
}  // namespace remuda::comm
