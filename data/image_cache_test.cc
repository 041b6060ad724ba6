#include "data/image_cache.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace remuda::data {
namespace {

/// Images of four values, each the index; it counts how often it is asked for each, and may fail.
class Counted final : public Images {
 public:
  explicit Counted(size_t size) : reads_(size) {}
  size_t size() const override { return reads_.size(); }
  const ImageShape& shape() const override { return shape_; }
  int classes() const override { return 3; }
  int label(size_t index) const override { return int(index) % 3; }
  Result<void> read(size_t index, std::span<uint8_t> values) const override {
    const std::lock_guard lock(mutex_);
    ++reads_[index];
    if (broken_.contains(index)) return usage_error("damaged");
    std::ranges::fill(values, uint8_t(index));
    return {};
  }
  int reads(size_t index) const { return reads_[index]; }
  void break_image(size_t index) { broken_.insert(index); }
  void mend() { broken_.clear(); }

 private:
  static constexpr ImageShape shape_{1, 2, 2};
  mutable std::mutex mutex_;
  mutable std::vector<int> reads_;
  std::set<size_t> broken_;
};

struct Cached {
  Counted* images;  ///< owned by the cache
  std::unique_ptr<ImageCache> cache;

  Cached(size_t size, uint64_t bytes) {
    auto counted = std::make_unique<Counted>(size);
    images = counted.get();
    cache = ImageCache::create(std::move(counted), bytes).value();
  }
  int value(size_t index) const {
    std::array<uint8_t, 4> values{};
    if (!cache->read(index, values)) return -1;
    EXPECT_EQ(std::ranges::count(values, values[0]), 4);
    return values[0];
  }
};

TEST(ImageCache, ReadsAnImageOnce) {
  const Cached set(7, 1000);
  EXPECT_EQ(set.cache->kept(), 7u) << "no more than there are";
  for (int epoch = 0; epoch < 3; ++epoch)
    for (size_t i = 0; i < 7; ++i) EXPECT_EQ(set.value(i), int(i));
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(set.images->reads(i), 1);
  EXPECT_EQ(set.cache->label(5), 2);
  EXPECT_EQ(set.cache->classes(), 3);
  EXPECT_EQ(set.cache->shape(), (ImageShape{1, 2, 2}));
}

TEST(ImageCache, KeepsAsManyAsFit) {
  const Cached set(10, 4 * 6 + 3);
  EXPECT_EQ(set.cache->kept(), 6u);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(set.value(i), int(i));
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(set.images->reads(i), i < 6 ? 1 : 2);
}

TEST(ImageCache, NothingIsKeptOfAnImageThatCannotBeRead) {
  const Cached set(3, 1000);
  set.images->break_image(1);
  EXPECT_EQ(set.value(1), -1);
  set.images->mend();
  EXPECT_EQ(set.value(1), 1);
  EXPECT_EQ(set.value(1), 1);
  EXPECT_EQ(set.images->reads(1), 2);
}

TEST(ImageCache, IsSharedBetweenProcesses) {
  const Cached mine(5, 1000);
  EXPECT_EQ(mine.value(2), 2);
  const pid_t child = ::fork();
  if (child == 0) {
    const Cached theirs(5, 1000);
    const bool attached = theirs.cache->attach(mine.cache->offer()).has_value();
    const bool read = theirs.value(2) == 2 && theirs.value(3) == 3;
    ::_exit(attached && read && theirs.images->reads(2) == 0 && theirs.images->reads(3) == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(mine.value(3), 3);
  EXPECT_EQ(mine.images->reads(3), 0) << "the other process has read it";
}

TEST(ImageCache, RefusesTheMemoryOfAnotherSet) {
  const Cached mine(5, 1000), other(6, 1000);
  EXPECT_EQ(other.value(4), 4);
  const auto attached = mine.cache->attach(other.cache->offer());
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().message, "another rank's memory for images is of another size");
  EXPECT_EQ(mine.value(4), 4);
  EXPECT_EQ(mine.images->reads(4), 1) << "it has its own still";
}

TEST(ImageCache, ManyThreadsGetWholeImages) {
  const Cached set(64, 1000);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        for (size_t i = 0; i < 64; ++i) ASSERT_EQ(set.value(i), int(i));
    });
  threads.clear();
  for (size_t i = 0; i < 64; ++i) EXPECT_LE(set.images->reads(i), 8);
}

}  // namespace
}  // namespace remuda::data
