#include "measure/core_latency.h"

#include <cmath>
#include <future>
#include <gtest/gtest.h>

namespace remuda::measure {
namespace {

TEST(CoreLatency, TakesTimeAndLeavesTheTurnAsItWas) {
  SharedTurn shared{};
  for (int i = 0; i < 2; ++i) {
    auto other = std::async(std::launch::async, [&] { return core_latency_s(shared, 1, 0.001); });
    const auto hop = core_latency_s(shared, 0, 0.001);
    ASSERT_TRUE(hop) << hop.error().message;
    EXPECT_GT(*hop, 0);
    EXPECT_TRUE(std::isfinite(*hop));
    const auto answered = other.get();
    ASSERT_TRUE(answered);
    EXPECT_EQ(*answered, 0);
    EXPECT_EQ(shared.turn, 0u);
  }
}

}  // namespace
}  // namespace remuda::measure
