#include "balance/unrest.h"

#include <gtest/gtest.h>

namespace remuda::balance {
namespace {

void steps(Unrest& unrest, int count) {
  for (int i = 0; i < count; ++i) unrest.step();
}

constexpr int kSeen = 40;  // steps after which it is known whether there is any

TEST(Unrest, IsAssumedUntilEnoughStepsWereSeen) {
  Unrest unrest(1);
  EXPECT_TRUE(unrest.present());
  steps(unrest, kSeen - 1);
  EXPECT_TRUE(unrest.present());
  steps(unrest, 1);
  EXPECT_FALSE(unrest.present());
}

TEST(Unrest, IsAbsentWhileSpeedsChangeNowAndThen) {
  Unrest unrest(2);
  steps(unrest, kSeen);
  for (int i = 0; i < 20; ++i) {
    steps(unrest, 60);
    unrest.shifted(0);
    EXPECT_FALSE(unrest.present());
  }
}

TEST(Unrest, IsPresentWhenOneDeviceChangesAgainAndAgain) {
  Unrest unrest(2);
  steps(unrest, kSeen);
  for (int i = 0; i < 2; ++i) {
    steps(unrest, 20);
    unrest.shifted(1);
    unrest.shifted(0);
  }
  EXPECT_FALSE(unrest.present()) << "twice for each device";
  steps(unrest, 20);
  unrest.shifted(1);
  EXPECT_TRUE(unrest.present());
}

TEST(Unrest, IsPresentWhenTimesScatter) {
  Unrest unrest(1);
  steps(unrest, kSeen);
  unrest.scattered(0.1);
  EXPECT_FALSE(unrest.present());
  unrest.scattered(0.2);
  EXPECT_TRUE(unrest.present());
}

TEST(Unrest, PassesAfterAWhile) {
  Unrest unrest(1);
  unrest.scattered(0.2);
  steps(unrest, 199);
  EXPECT_TRUE(unrest.present());
  steps(unrest, 1);
  EXPECT_FALSE(unrest.present());
}

}  // namespace
}  // namespace remuda::balance
