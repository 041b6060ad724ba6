#include "measure/ping_pong.h"

#include <cmath>
#include <future>
#include <gtest/gtest.h>

namespace remuda::measure {
namespace {

TEST(PingPong, TakesTimeAndLeavesTheMessageAsItWas) {
  PingPongMessage message{};
  for (int i = 0; i < 2; ++i) {
    auto other = std::async(std::launch::async, [&] { return ping_pong_s(message, 1, 0.001); });
    const auto hop = ping_pong_s(message, 0, 0.001);
    ASSERT_TRUE(hop) << hop.error().message;
    EXPECT_GT(*hop, 0);
    EXPECT_TRUE(std::isfinite(*hop));
    const auto answered = other.get();
    ASSERT_TRUE(answered);
    EXPECT_EQ(*answered, 0);
    EXPECT_EQ(message.number, 0u);
  }
}

}  // namespace
}  // namespace remuda::measure
