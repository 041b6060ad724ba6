#include "balance/balancer.h"

#include <cmath>
#include <gmock/gmock.h>
#include <numeric>
#include <rapidcheck/gtest.h>

#include "balance/testing/server.h"

namespace remuda::balance {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Balancer, StartsEvenWhenNothingIsKnown) {
  Server server = unlike();
  const auto first = server.balancer.start();
  ASSERT_TRUE(first);
  EXPECT_THAT(first->shares, ElementsAre(40, 40));
  EXPECT_EQ(first->predicted_step_s, 0);
  EXPECT_EQ(first->reason, "no speed is known yet: the shares start even");
}

TEST(Balancer, StartsByItsCalibration) {
  Server server = unlike();
  server.calibrate({8, 24, 48});
  const auto first = server.balancer.start();
  ASSERT_TRUE(first);
  EXPECT_THAT(first->shares, ElementsAre(60, 20));
  EXPECT_NEAR(first->predicted_step_s, 8e-3, 1e-9);
  EXPECT_NEAR(first->predicted_gain, 1 - 8.0 / 14, 1e-6);
  EXPECT_EQ(first->reason,
            "the shares follow the calibration: the step is predicted 43 % shorter than with even shares");
  EXPECT_EQ(server.balancer.changes(), 0);
}

TEST(Balancer, StartsEvenWhenOneDeviceWasNotCalibrated) {
  Server server = unlike();
  server.balancer.calibrate(0, 8, 1.0);
  EXPECT_THAT(server.balancer.start()->shares, ElementsAre(40, 40));
}

TEST(Balancer, IgnoresCalibrationsThatAreNoTimes) {
  Server server = unlike();
  for (const double seconds : {0.0, -1.0, double(INFINITY), double(NAN)})
    for (const int device : {0, 1}) server.balancer.calibrate(device, 8, seconds);
  EXPECT_THAT(server.balancer.start()->shares, ElementsAre(40, 40));
}

TEST(Balancer, FindsTheBestSharesAndStays) {
  Server server = unlike();
  ASSERT_TRUE(server.balancer.start());
  server.run(200);
  EXPECT_THAT(server.balancer.shares(), ElementsAre(60, 20));
  EXPECT_LE(server.decisions.size(), 3u);
  EXPECT_LE(server.decisions.back().step, 20);
  EXPECT_EQ(server.balancer.changes(), static_cast<int>(server.decisions.size()));
  EXPECT_EQ(server.decisions[0].reason.substr(0, 24), "device 1 is the slowest:");
}

TEST(Balancer, LooksAtNothingWhileSharesSettle) {
  Server server = unlike();
  ASSERT_TRUE(server.balancer.start());
  EXPECT_FALSE(server.balancer.observe(0, std::vector{0.9, 0.1}));
  EXPECT_FALSE(server.balancer.observe(1, std::vector{0.9, 0.1}));
  server.run(3);
  ASSERT_EQ(server.decisions.size(), 1u);
  EXPECT_GT(server.decisions[0].shares[0], 40);
}

TEST(Balancer, FollowsADeviceThatBecomesSlower) {
  Server server = unlike();
  server.calibrate({8, 24, 48});
  ASSERT_TRUE(server.balancer.start());
  server.run(50);
  ASSERT_TRUE(server.decisions.empty());
  server.devices[0] = {4e-3, 2e-4};
  server.run(3);
  ASSERT_EQ(server.decisions.size(), 1u);
  EXPECT_EQ(server.decisions[0].reason,
            "device 0 became 2.0x slower: its share goes from 60 to 44 samples; the step is predicted 20 % shorter");
  EXPECT_EQ(server.decisions[0].step, 52);
}

TEST(Balancer, DoesNotMoveForASpike) {
  Server server = unlike();
  server.calibrate({8, 24, 48});
  ASSERT_TRUE(server.balancer.start());
  for (int round = 0; round < 10; ++round) {
    server.run(20);
    EXPECT_FALSE(server.balancer.observe(server.step++, std::vector{24e-3, 8e-3}));
  }
  EXPECT_TRUE(server.decisions.empty());
}

TEST(Balancer, DoesNotMoveForLessThanTheLeastGain) {
  Server server(kUnlike, options(BalancePolicy::automatic, 80, {{}, {}}));
  server.calibrate({8, 24, 48});
  ASSERT_TRUE(server.balancer.start());
  server.devices[0].fixed_s += 0.1e-3;
  server.run(300);
  EXPECT_TRUE(server.decisions.empty());
}

TEST(Balancer, KeepsEvenSharesUnderEven) {
  Server server = unlike(BalancePolicy::even);
  server.calibrate({8, 24, 48});
  const auto first = server.balancer.start();
  EXPECT_THAT(first->shares, ElementsAre(40, 40));
  EXPECT_EQ(first->reason, "the policy is even: every device takes the same share");
  server.run(50);
  EXPECT_TRUE(server.decisions.empty());
}

TEST(Balancer, KeepsGivenSharesUnderFixed) {
  Server server(kUnlike, {.policy = BalancePolicy::fixed, .global_batch = 80, .weights = {1, 3}, .bounds = {{}, {}}});
  const auto first = server.balancer.start();
  EXPECT_THAT(first->shares, ElementsAre(20, 60));
  EXPECT_EQ(first->reason, "the policy is fixed: the shares follow the given weights");
  server.run(50);
  EXPECT_TRUE(server.decisions.empty());
}

TEST(Balancer, RespectsBoundsUnderEveryPolicy) {
  const std::vector<Bounds> bounds{{0, 30}, {0, 100}, {40, 100}};
  for (const auto policy : {BalancePolicy::automatic, BalancePolicy::even}) {
    Balancer balancer(options(policy, 90, bounds));
    EXPECT_THAT(balancer.start()->shares, ElementsAre(25, 25, 40));
  }
  Balancer balancer({.policy = BalancePolicy::fixed, .global_batch = 90, .weights = {9, 1, 0}, .bounds = bounds});
  EXPECT_THAT(balancer.start()->shares, ElementsAre(30, 20, 40));
}

TEST(Balancer, FailsToStartWhenTheBatchDoesNotFit) {
  Balancer balancer(options(BalancePolicy::automatic, 90, {{0, 30}, {0, 40}}));
  const auto first = balancer.start();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().message, "the global batch of 90 samples does not fit: the devices together take 70 at most");
}

TEST(Balancer, LimitsADeviceAtOnceUnderEveryPolicy) {
  for (const auto policy : {BalancePolicy::automatic, BalancePolicy::even}) {
    Server server = unlike(policy);
    ASSERT_TRUE(server.balancer.start());
    const auto decision = server.balancer.limit(7, 0, 25);
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->step, 7);
    EXPECT_THAT(decision->shares, ElementsAre(25, 55));
    EXPECT_EQ(decision->reason, "device 0 takes at most 25 samples: its share goes from 40 to 25 samples");
    EXPECT_THAT(server.balancer.shares(), ElementsAre(25, 55));
    EXPECT_EQ(server.balancer.changes(), 1);
    server.run(100);
    EXPECT_LE(server.balancer.shares()[0], 25);
  }
}

TEST(Balancer, LetsThoseThatAreLeftOutHelpWhereTheOthersHaveNoRoom) {
  Server server = unlike();
  ASSERT_TRUE(server.balancer.start());
  ASSERT_TRUE(server.balancer.allow(5, {true, false}, "device 1 is left out"));
  EXPECT_THAT(server.balancer.shares(), ElementsAre(80, 0));
  const auto decision = server.balancer.limit(7, 0, 30);
  ASSERT_TRUE(decision);
  EXPECT_THAT(decision->shares, ElementsAre(30, 50));
  EXPECT_THAT(server.balancer.allowed(), ElementsAre(true, true));
}

TEST(Balancer, NeverLiftsALimit) {
  Server server = unlike();
  ASSERT_TRUE(server.balancer.start());
  ASSERT_TRUE(server.balancer.limit(1, 0, 25));
  ASSERT_TRUE(server.balancer.limit(2, 0, 70));
  EXPECT_LE(server.balancer.shares()[0], 25);
}

TEST(Balancer, RefusesALimitThatLeavesNoRoom) {
  Server server(kUnlike, options(BalancePolicy::automatic, 80, {{}, {0, 50}}));
  ASSERT_TRUE(server.balancer.start());
  const auto decision = server.balancer.limit(1, 0, 10);
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error().message,
            "the global batch of 80 samples does not fit: the devices together take 60 at most");
  EXPECT_THAT(server.balancer.shares(), ElementsAre(40, 40));
  EXPECT_EQ(server.balancer.changes(), 0);
}

/// A machine on which a neighbour slows both devices down, now more and now less.
TEST(Balancer, StaysWhereItIsWhileAllDevicesAreDisturbedAlike) {
  Server server = unlike();
  server.calibrate({80, 40, 20});
  ASSERT_TRUE(server.balancer.start());
  for (int step = 0; step < 400; ++step) {
    std::vector<double> seconds = server.seconds();
    const double load = 1 + (step / 13 % 3) * 0.5, wobble = 0.2 * ((step * 7) % 5 - 2);
    for (double& time : seconds) time *= load * (1 + wobble);
    if (const auto decision = server.balancer.observe(step, seconds)) server.decisions.push_back(*decision);
  }
  EXPECT_LE(server.decisions.size(), 2u);
  EXPECT_NEAR(server.balancer.shares()[0], 60, 3);
}

TEST(Balancer, FollowsADeviceThatBecomesSlowerOnARestlessMachineToo) {
  Server server = unlike();
  server.calibrate({80, 40, 20});
  ASSERT_TRUE(server.balancer.start());
  for (int step = 0; step < 300; ++step) {
    if (step == 150) server.devices[0] = {4e-3, 2e-4};
    std::vector<double> seconds = server.seconds();
    for (size_t i = 0; i < 2; ++i) seconds[i] *= 1 + 0.15 * ((step * (i ? 7 : 11)) % 5 - 2);
    if (const auto decision = server.balancer.observe(step, seconds)) server.decisions.push_back(*decision);
  }
  EXPECT_LE(server.decisions.size(), 8u);
  EXPECT_NEAR(server.balancer.shares()[0], 44, 8);
  EXPECT_THAT(server.decisions.back().reason, HasSubstr("steps would have been"));
  EXPECT_GE(server.decisions.back().predicted_gain, 0.02);
}

TEST(Balancer, TakesMoreDevicesThanSamples) {
  Server server({{1e-3, 1e-3}, {1e-3, 1e-3}, {1e-3, 1e-3}}, options(BalancePolicy::automatic, 2, {{}, {}, {}}));
  EXPECT_THAT(server.balancer.start()->shares, ElementsAre(1, 1, 0));
  server.run(500);
  EXPECT_EQ(std::accumulate(server.balancer.shares().begin(), server.balancer.shares().end(), 0), 2);
}

TEST(BalancerDeathTest, RefusesTheWrongNumberOfTimes) {
  Server server = unlike();
  ASSERT_TRUE(server.balancer.start());
  EXPECT_DEATH(server.balancer.observe(0, std::vector{1.0}), "one time per device");
}

/// Times grow with the units: 2 ms, and 1.6 ms or 4.8 ms for each.
TEST(Balancer, SplitsWholeUnits) {
  BalanceOptions in_units = options(BalancePolicy::automatic, 160, {{}, {}});
  in_units.unit = 16;
  Server server(kUnlike, in_units);
  server.calibrate({32, 64, 160});
  EXPECT_THAT(server.balancer.start()->shares, ElementsAre(128, 32));
  server.devices[1] = {2e-3, 1e-4};
  server.run(40);
  EXPECT_THAT(server.balancer.shares(), ElementsAre(80, 80));
  EXPECT_THAT(server.decisions.back().reason, HasSubstr(" to 80 samples"));
  EXPECT_THAT(server.decisions.back().shares, ElementsAre(80, 80));
  const auto limited = server.balancer.limit(50, 0, 47);
  EXPECT_EQ(limited->reason, "device 0 takes at most 32 samples: its share goes from 80 to 32 samples");
  EXPECT_THAT(limited->shares, ElementsAre(32, 128));
  EXPECT_EQ(server.balancer.limit(51, 1, 127).error().message,
            "the global batch of 160 samples does not fit: the devices together take 144 at most");
}

RC_GTEST_PROP(BalancerProperty, KeepsTheBatchAndTheBoundsWhateverTheTimes, ()) {
  const int devices = *rc::gen::inRange(1, 6), unit = *rc::gen::inRange(1, 4);
  const int global_batch = unit * *rc::gen::inRange(1, 200);
  std::vector<Bounds> bounds(devices);
  for (Bounds& bound : bounds) bound.high = *rc::gen::inRange(0, 2 * global_batch);
  bounds[*rc::gen::inRange(0, devices)].high = global_batch;
  BalanceOptions in_units = options(BalancePolicy::automatic, global_batch, bounds);
  in_units.unit = unit;
  Balancer balancer(in_units);
  RC_ASSERT(balancer.start().has_value());
  const auto odd = rc::gen::element<double>(0.0, -1.0, NAN, INFINITY, 1e-300, 1e300, 2e-9, 9e5, 1e-3, 1.1e-3, 1.0);
  for (int step = 0; step < 60; ++step) {
    const auto seconds = *rc::gen::container<std::vector<double>>(devices, odd);
    const auto decision = balancer.observe(step, seconds);
    if (step % 20 == 19) {
      const int device = *rc::gen::inRange(0, devices), most = *rc::gen::inRange(0, global_batch + 1);
      if (balancer.limit(step, device, most)) bounds[device].high = std::min(bounds[device].high, most);
    }
    const auto& shares = balancer.shares();
    RC_ASSERT(std::accumulate(shares.begin(), shares.end(), 0) == global_batch);
    for (int i = 0; i < devices; ++i) RC_ASSERT(shares[i] >= 0 && shares[i] <= bounds[i].high && shares[i] % unit == 0);
    if (decision)
      RC_ASSERT(decision->predicted_gain >= 0.02 || decision->reason.find("measure it") != std::string::npos);
  }
}

}  // namespace
}  // namespace remuda::balance
