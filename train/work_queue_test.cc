#include "train/work_queue.h"

#include <atomic>
#include <gtest/gtest.h>

namespace remuda::train {
namespace {

TEST(WorkQueue, WorksInOrder) {
  WorkQueue queue;
  std::vector<int> seen;
  for (int i = 0; i < 100; ++i)
    queue.push([&seen, i]() -> Result<void> {
      seen.push_back(i);
      return {};
    });
  ASSERT_TRUE(queue.drain());
  ASSERT_EQ(seen.size(), 100u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(WorkQueue, DropsWhatComesAfterAnError) {
  WorkQueue queue;
  std::atomic<int> ran = 0;
  queue.push([]() -> Result<void> { return failed("first"); });
  queue.push([&]() -> Result<void> {
    ++ran;
    return {};
  });
  EXPECT_EQ(queue.drain().error().message, "first");
  queue.push([&]() -> Result<void> {
    ++ran;
    return {};
  });
  EXPECT_EQ(queue.drain().error().message, "first");
  EXPECT_EQ(ran, 0);
}

TEST(WorkQueue, EndsWithoutBeingDrained) {
  WorkQueue queue;
  queue.push([]() -> Result<void> { return {}; });
}

}  // namespace
}  // namespace remuda::train
