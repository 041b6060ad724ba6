#include "train/work_queue.h"

#include <algorithm>
#include <atomic>
#include <future>
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

TEST(WorkQueue, SaysWhatIsDone) {
  WorkQueue queue;
  std::promise<void> let;
  const uint64_t first = queue.push([]() -> Result<void> { return {}; });
  const uint64_t second = queue.push([&]() -> Result<void> {
    let.get_future().wait();
    return {};
  });
  ASSERT_TRUE(queue.wait(first));
  EXPECT_TRUE(queue.is_done(first));
  EXPECT_FALSE(queue.is_done(second));
  let.set_value();
  ASSERT_TRUE(queue.wait(second));
  EXPECT_TRUE(queue.is_done(second));
  const uint64_t wrong = queue.push([]() -> Result<void> { return failed("wrong"); });
  const uint64_t dropped = queue.push([]() -> Result<void> { return {}; });
  EXPECT_EQ(queue.wait(dropped).error().message, "wrong");
  EXPECT_EQ(queue.wait(wrong).error().message, "wrong");
  EXPECT_TRUE(queue.is_done(queue.push([]() -> Result<void> { return {}; }))) << "it will never be";
}

TEST(WorkQueue, EndsWithoutBeingDrained) {
  WorkQueue queue;
  queue.push([]() -> Result<void> { return {}; });
}

}  // namespace
}  // namespace remuda::train
