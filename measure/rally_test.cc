#include "measure/rally.h"

#include <cmath>
#include <future>
#include <gtest/gtest.h>

namespace remuda::measure {
namespace {

TEST(Rally, TakesTimeAndLeavesTheBallAsItWas) {
  Ball ball{};
  for (int i = 0; i < 2; ++i) {
    auto other = std::async(std::launch::async, [&] { return rally_s(ball, 1, 0.001); });
    const auto hop = rally_s(ball, 0, 0.001);
    ASSERT_TRUE(hop) << hop.error().message;
    EXPECT_GT(*hop, 0);
    EXPECT_TRUE(std::isfinite(*hop));
    const auto answered = other.get();
    ASSERT_TRUE(answered);
    EXPECT_EQ(*answered, 0);
    EXPECT_EQ(ball.turn, 0u);
  }
}

}  // namespace
}  // namespace remuda::measure
