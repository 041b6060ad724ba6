#include "data/loader.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <latch>
#include <numeric>

namespace remuda::data {
namespace {

using testing::Each;
using testing::ElementsAre;

/// Samples whose input is their epoch and index, and whose target is the index.
class Numbers final : public Dataset {
 public:
  explicit Numbers(size_t size) : times(size), size_(size) {}
  size_t size() const override { return size_; }
  size_t input_bytes() const override { return 2 * sizeof(uint64_t); }
  size_t target_bytes() const override { return sizeof(uint64_t); }
  Result<void> write(uint64_t index, uint64_t epoch, std::span<std::byte> input,
                     std::span<std::byte> target) const override {
    if (before) before(index);
    if (index == wrong) return usage_error(fmt::format("sample {} is wrong", index));
    if (index == throwing) throw std::runtime_error("no room");
    ++times[index];
    auto* const numbers = reinterpret_cast<uint64_t*>(input.data());
    numbers[0] = epoch;
    numbers[1] = index;
    *reinterpret_cast<uint64_t*>(target.data()) = index;
    return {};
  }

  std::function<void(uint64_t)> before;
  uint64_t wrong = UINT64_MAX, throwing = UINT64_MAX;
  mutable std::vector<std::atomic<int>> times;  ///< that each was made

 private:
  size_t size_;
};

/// Epoch and index of each sample of a batch.
std::vector<SampleOrder::Place> places(const LoadedBatch& batch, uint64_t count) {
  std::vector<SampleOrder::Place> places;
  const auto* input = reinterpret_cast<const uint64_t*>(batch.inputs.get());
  const auto* target = reinterpret_cast<const uint64_t*>(batch.targets.get());
  for (uint64_t i = 0; i < count; ++i) {
    places.push_back({input[2 * i], input[2 * i + 1]});
    EXPECT_EQ(target[i], places.back().index);
  }
  return places;
}

TEST(SampleOrder, HasEachSampleOnceInEachEpochAndInAnotherOrder) {
  const SampleOrder order = SampleOrder::shuffled(50, 7);
  std::vector<uint64_t> first, second;
  for (uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(order[i].epoch, 1u);
    EXPECT_EQ(order[50 + i].epoch, 2u);
    first.push_back(order[i].index);
    second.push_back(order[50 + i].index);
    EXPECT_EQ(SampleOrder::as_they_are(50)[100 + i], (SampleOrder::Place{0, i}));
  }
  EXPECT_NE(first, second);
  std::ranges::sort(first);
  std::vector<uint64_t> all(50);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(first, all);
}

TEST(Loader, GivesTheSamplesOfARangeForAnyNumberOfWorkers) {
  const Numbers set(1000);
  const SampleOrder order = SampleOrder::shuffled(1000, 3);
  for (const int workers : {0, 1, 4}) {
    SCOPED_TRACE(workers);
    Loader loader(set, order, workers);
    for (uint64_t first = 0; first < 3000; first += 150) {
      const std::vector<Range> next{{first + 150, 150}, {first + 300, 150}};
      const auto batch = loader.take({first, 150}, next).value();
      std::vector<SampleOrder::Place> expected;
      for (uint64_t i = 0; i < 150; ++i) expected.push_back(order[first + i]);
      ASSERT_EQ(places(batch, 150), expected);
    }
  }
}

TEST(Loader, MayBeAskedForNothing) {
  const Numbers set(10);
  for (const int workers : {0, 2}) {
    Loader loader(set, SampleOrder::as_they_are(10), workers);
    EXPECT_TRUE(loader.take({5, 0}, std::vector<Range>{{5, 0}, {5, 1}}));
    EXPECT_EQ(places(loader.take({5, 1}).value(), 1)[0].index, 5u);
  }
}

/// What is expected is made while nobody asks for it: else these waits would have no end.
TEST(Loader, MakesWhatIsExpectedWithoutBeingAsked) {
  Numbers set(100);
  std::latch ahead(60);
  set.before = [&](uint64_t index) {
    if (index >= 40) ahead.count_down();
  };
  Loader loader(set, SampleOrder::as_they_are(100), 2);
  ASSERT_TRUE(loader.take({0, 40}, std::vector<Range>{{40, 30}, {70, 30}}));
  ahead.wait();
  ASSERT_TRUE(loader.take({40, 30}));
  EXPECT_THAT(set.times, Each(testing::Truly([](const auto& times) { return times == 1; })));
}

TEST(Loader, KeepsTheSamplesThatAnotherShareHasToo) {
  Numbers set(100);
  std::latch ahead(40);
  std::atomic<int> begun = 0;
  set.before = [&](uint64_t index) {
    if (index >= 20 && index < 60 && ++begun <= 40) ahead.count_down();
  };
  {
    Loader loader(set, SampleOrder::as_they_are(100), 2);
    ASSERT_TRUE(loader.take({0, 20}, std::vector<Range>{{20, 20}, {40, 20}}));
    ahead.wait();
    const auto batch = loader.take({25, 30}, std::vector<Range>{{55, 30}}).value();  // the share has grown
    EXPECT_EQ(places(batch, 30).front().index, 25u);
    EXPECT_EQ(places(batch, 30).back().index, 54u);
    ASSERT_TRUE(loader.take({55, 30}));
  }
  const auto again = std::accumulate(set.times.begin() + 20, set.times.begin() + 60, 0,
                                     [](int sum, const auto& times) { return sum + (times > 1 ? 1 : 0); });
  EXPECT_LE(again, 2) << "at most what each worker had not yet handed in";
}

TEST(Loader, AWrongSampleIsAnErrorOfTheBatchThatHoldsIt) {
  Numbers set(100);
  set.wrong = 45;
  for (const int workers : {0, 2}) {
    Loader loader(set, SampleOrder::as_they_are(100), workers);
    EXPECT_TRUE(loader.take({0, 40}, std::vector<Range>{{40, 40}})) << "it is only ahead";
    const auto wrong = loader.take({40, 40});
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().message, "sample 45 is wrong");
    EXPECT_TRUE(loader.take({50, 40})) << "others are made still";
  }
}

TEST(Loader, AnExceptionIsAnErrorToo) {
  Numbers set(10);
  set.throwing = 3;
  for (const int workers : {0, 2}) {
    Loader loader(set, SampleOrder::as_they_are(10), workers);
    EXPECT_EQ(loader.take({0, 10}).error().message, "cannot make a sample: no room");
  }
}

TEST(Loader, EndsWithWorkAhead) {
  const Numbers set(1'000'000);
  Loader loader(set, SampleOrder::as_they_are(1'000'000), 3);
  ASSERT_TRUE(loader.take({0, 10}, std::vector<Range>{{10, 900'000}}));
}

}  // namespace
}  // namespace remuda::data
