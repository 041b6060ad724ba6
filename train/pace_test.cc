#include "train/pace.h"

#include <gtest/gtest.h>

namespace remuda::train {
namespace {

struct FakeClock final : Clock {
  double now_s() override { return now; }
  void sleep_s(double seconds) override {
    now += seconds;
    slept += seconds;
  }
  double now = 100, slept = 0;
};

TEST(Pace, FullSpeedNeverSleeps) {
  FakeClock clock;
  Pace pace(1, clock);
  pace.start();
  clock.now += 2;
  pace.stretch();
  EXPECT_EQ(pace.stop(), 2);
  EXPECT_EQ(clock.slept, 0);
}

TEST(Pace, StretchesEachPartOnceAndTheWholeByTheFactor) {
  FakeClock clock;
  Pace pace(3, clock);
  pace.start();
  clock.now += 1;
  pace.stretch();
  EXPECT_EQ(clock.slept, 2) << "the delay so far comes before others see the result";
  pace.stretch();
  EXPECT_EQ(clock.slept, 2);
  clock.now += 0.5;
  EXPECT_DOUBLE_EQ(pace.stop(), 4.5);
}

TEST(Pace, DoesNothingOutsideCompute) {
  FakeClock clock;
  Pace pace(3, clock);
  clock.now += 5;
  pace.stretch();
  EXPECT_EQ(clock.slept, 0);
}

}  // namespace
}  // namespace remuda::train
