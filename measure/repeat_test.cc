#include "measure/repeat.h"

#include <gtest/gtest.h>

namespace remuda::measure {
namespace {

TEST(Median, IsTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 3);
}

TEST(MedianOfRuns, LeavesTheFirstOutAndTakesThreeAtLeast) {
  int calls = 0;
  const double seconds = median_s(0, [&] { return ++calls == 1 ? 1000.0 : calls; });
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(seconds, 3);
}

TEST(Time, IsNotNegative) {
  bool called = false;
  EXPECT_GE(time_s([&] { called = true; }), 0);
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace remuda::measure
