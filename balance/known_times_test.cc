// What one balancer knows of the devices, given to the next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "balance/balancer.h"

namespace remuda::balance {
namespace {

BalanceOptions known_options(int unit = 1) {
  return {.policy = BalancePolicy::automatic, .global_batch = 80, .unit = unit, .bounds = {{0, 80}, {0, 80}}};
}

TEST(KnownTimes, TheNextBalancerStartsWhereTheFirstOneStood) {
  std::vector<CostLine> devices{{2e-3, 1e-4}, {2e-3, 3e-4}};
  Balancer first(known_options());
  for (int device = 0; device < 2; ++device)
    for (const int batch : {80, 40, 20}) first.calibrate(device, batch, devices[device].seconds(batch));
  ASSERT_TRUE(first.start());
  const std::vector<int> at_first = first.shares();
  devices[0].per_sample_s *= 4;
  const auto run = [&](Balancer& balancer) {
    for (int step = 0; step < 100; ++step) {
      std::vector<double> seconds;
      for (int device = 0; device < 2; ++device) seconds.push_back(devices[device].seconds(balancer.shares()[device]));
      (void)balancer.observe(step, seconds);
    }
  };
  run(first);
  ASSERT_NE(first.shares(), at_first);

  Balancer next(known_options());
  for (int device = 0; device < 2; ++device)
    for (const BatchTime& time : first.known_times(device)) next.calibrate(device, time.batch, time.seconds);
  ASSERT_TRUE(next.start());
  const int there = first.shares()[0];
  EXPECT_NEAR(next.shares()[0], there, 0.1 * there);
  EXPECT_NE(next.shares(), at_first);
  run(next);
  EXPECT_LE(next.changes(), 1);
}

TEST(KnownTimes, AreOfSamplesAlsoWhereSharesAreOfMicroBatches) {
  Balancer balancer(known_options(4));
  balancer.calibrate(0, 40, 0.5);
  const std::vector<BatchTime> known = balancer.known_times(0);
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].batch, 40);
  EXPECT_EQ(known[0].seconds, 0.5);
  EXPECT_TRUE(balancer.known_times(1).empty());
}

}  // namespace
}  // namespace remuda::balance
