#include "balance/reason.h"

#include <gtest/gtest.h>

namespace remuda::balance {
namespace {

TEST(Reason, TellsAChangeOfSpeed) {
  EXPECT_EQ(speed_reason({"device 1", 60, 38}, 1.8, 0.12),
            "device 1 became 1.8x slower: its share goes from 60 to 38 samples; the step is predicted 12 % shorter");
  EXPECT_EQ(speed_reason({"device 1", 38, 60}, 0.5, 0.12),
            "device 1 became 2.0x faster: its share goes from 38 to 60 samples; the step is predicted 12 % shorter");
}

TEST(Reason, TellsTheSlowest) {
  EXPECT_EQ(slowest_reason({"device 2", 24, 1}, 0.5),
            "device 2 is the slowest: its share goes from 24 to 1 sample; the step is predicted 50 % shorter");
}

TEST(Reason, TellsARetry) {
  EXPECT_EQ(retry_reason({"device 2", 0, 1}, 200),
            "device 2 had no samples for 200 steps: its share goes from 0 to 1 sample to measure it again");
}

TEST(Reason, TellsALimit) {
  EXPECT_EQ(limit_reason({"device 0", 60, 38}, 38),
            "device 0 takes at most 38 samples: its share goes from 60 to 38 samples");
  EXPECT_EQ(limit_reason({"device 0", 30, 30}, 38), "device 0 takes at most 38 samples: its share stays at 30 samples");
}

TEST(Reason, TellsAGain) {
  EXPECT_EQ(gain_text(0.123), "the step is predicted 12 % shorter");
  EXPECT_EQ(gain_text(-0.05), "the step is predicted 5 % longer");
}

TEST(Reason, HindsightSaysOverHowManySteps) {
  EXPECT_EQ(
      hindsight_reason({"cpu:1", 60, 52}, 32, 0.041),
      "the last 32 steps would have been 4 % shorter with other shares: that of cpu:1 goes from 60 to 52 samples");
}

}  // namespace
}  // namespace remuda::balance
