#include "run/pool_retry.h"

#include <gtest/gtest.h>

namespace remuda::run {
namespace {

TEST(PoolRetry, RestsLongerTheLongerNothingSucceeds) {
  EXPECT_EQ(PoolRetry::pause_s(0), 0.25);
  EXPECT_EQ(PoolRetry::pause_s(8), 1);
  EXPECT_EQ(PoolRetry::pause_s(120), 15);
  EXPECT_EQ(PoolRetry::pause_s(86400), 60) << "a minute at most";
}

TEST(PoolRetry, SeldomTriesInADay) {
  int tries = 0;
  for (double at_s = 0; at_s < 86400; at_s += PoolRetry::pause_s(at_s)) ++tries;
  EXPECT_LT(tries, 1500);
}

}  // namespace
}  // namespace remuda::run
