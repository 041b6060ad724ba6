// Devices that get no samples, as they only slow the others down: when they are dropped, tried again and taken back.
#include <algorithm>
#include <gmock/gmock.h>

#include "balance/balancer.h"
#include "balance/testing/server.h"

namespace remuda::balance {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

TEST(IdleDevice, IsNeverTriedWhereItIsLimitedToNothing) {
  Server server = unlike();
  ASSERT_TRUE(server.balancer.start());
  ASSERT_TRUE(server.balancer.limit(1, 1, 0));
  server.run(1000);
  EXPECT_THAT(server.balancer.shares(), ElementsAre(80, 0));
  EXPECT_TRUE(server.decisions.empty());
}

TEST(IdleDevice, IsDroppedByWayOfOneSampleWhereItIsHopeless) {
  Server server({{1e-3, 1e-4}, {1e-3, 1e-4}, {1.0, 1e-3}}, options(BalancePolicy::automatic, 90, {{}, {}, {}}));
  ASSERT_TRUE(server.balancer.start());
  server.run(60);
  EXPECT_THAT(server.balancer.shares(), ElementsAre(45, 45, 0));
  ASSERT_GE(server.decisions.size(), 2u);
  EXPECT_EQ(server.decisions[server.decisions.size() - 2].shares[2], 1);
}

TEST(IdleDevice, IsTakenBackOnceItHasRecovered) {
  Server server({{1e-3, 1e-4}, {1e-3, 1e-4}, {7e-3, 1e-4}}, options(BalancePolicy::automatic, 90, {{}, {}, {}}));
  ASSERT_TRUE(server.balancer.start());
  server.run(60);
  ASSERT_EQ(server.balancer.shares()[2], 0);
  server.devices[2] = {1e-3, 1e-4};
  server.decisions.clear();
  server.run(300);
  EXPECT_THAT(server.balancer.shares(), Each(AllOf(Ge(29), Le(31))));
  EXPECT_THAT(server.decisions[0].reason, HasSubstr("device 2 had no samples for 200 steps"));
}

TEST(IdleDevice, IsTriedAgainEverMoreSeldom) {
  Server server({{1e-3, 1e-4}, {1e-3, 1e-4}, {1.0, 1e-3}}, options(BalancePolicy::automatic, 90, {{}, {}, {}}));
  ASSERT_TRUE(server.balancer.start());
  server.run(60);
  server.decisions.clear();
  server.run(3000);
  EXPECT_LE(server.decisions.size(), 8u);
  EXPECT_THAT(server.balancer.shares(), ElementsAre(45, 45, 0));
}

TEST(IdleDevice, IsSoFromTheStartWhereItsCalibrationShowsItToBeHopeless) {
  Server server({{1e-3, 1e-4}, {0.1, 1e-2}}, options(BalancePolicy::automatic, 8, {{}, {}}));
  server.calibrate({8, 4, 2});
  EXPECT_THAT(server.balancer.start()->shares, ElementsAre(8, 0));
}

TEST(IdleDevice, IsMeasuredFirstWhereItIsJustTooSlow) {
  Server server({{1e-3, 1e-4}, {2.5e-3, 1e-4}}, options(BalancePolicy::automatic, 8, {{}, {}}));
  server.calibrate({8, 4, 2});
  EXPECT_THAT(server.balancer.start()->shares, ElementsAre(7, 1));
  server.run(40);
  EXPECT_THAT(server.balancer.shares(), ElementsAre(8, 0));
}

TEST(IdleDevice, CostsLittleToTry) {
  Server server({{1e-3, 1e-4}, {0.1, 1e-2}}, options(BalancePolicy::automatic, 8, {{}, {}}));
  server.calibrate({8, 4, 2});
  ASSERT_TRUE(server.balancer.start());
  const double alone_s = server.devices[0].seconds(8);
  double took_s = 0;
  const int steps = 60000;
  for (int step = 0; step < steps; ++step) {
    took_s += slowest_s(server.devices, server.balancer.shares());
    server.run(1);
  }
  EXPECT_GE(server.decisions.size(), 2u) << "it is tried";
  EXPECT_LE(took_s, 1.02 * steps * alone_s);
}

TEST(IdleDevice, GetsSamplesAgainThoughItWasHopelessAtFirst) {
  Server server({{1e-3, 1e-4}, {5e-3, 2e-4}}, options(BalancePolicy::automatic, 8, {{}, {}}));
  server.calibrate({8, 4, 2});
  ASSERT_THAT(server.balancer.start()->shares, ElementsAre(8, 0));
  server.devices[1] = server.devices[0];
  server.run(2000);
  EXPECT_GE(server.balancer.shares()[1], 1);
}

/// Every third of its times is long. Its medians do not show that, and without samples no step does.
TEST(IdleDevice, ThatHeldTheOthersUpOnARestlessMachineIsSeldomTakenBack) {
  Server server = unlike();
  server.calibrate({80, 40, 20});
  ASSERT_TRUE(server.balancer.start());
  double took_s = 0;
  for (int step = 0; step < 2000; ++step) {
    std::vector<double> seconds = server.seconds();
    for (size_t i = 0; i < 2; ++i) seconds[i] *= 1 + 0.15 * ((step * (i ? 7 : 11)) % 5 - 2);
    if (step % 3 == 0) seconds[1] *= 5;
    took_s += std::ranges::max(seconds);
    if (const auto decision = server.balancer.observe(step, seconds)) server.decisions.push_back(*decision);
  }
  EXPECT_LE(server.decisions.size(), 12u);
  EXPECT_LE(took_s, 1.03 * 2000 * server.devices[0].seconds(80));
}

TEST(IdleDevice, IsNotTriedWhereItIsNotAllowed) {
  Server server = unlike();
  server.calibrate({80, 40, 20});
  ASSERT_TRUE(server.balancer.start());
  server.run(20);
  const auto decision = server.balancer.allow(20, {true, false}, "it is left out");
  ASSERT_TRUE(decision);
  EXPECT_THAT(decision->shares, ElementsAre(80, 0));
  EXPECT_EQ(decision->reason, "it is left out");
  server.run(1000);
  EXPECT_THAT(server.balancer.shares(), ElementsAre(80, 0));
  EXPECT_TRUE(server.decisions.empty());
  EXPECT_THAT(server.balancer.allow(1020, {true, true}, "it is back")->shares, ElementsAre(60, 20));
}

TEST(IdleDevice, IsAllowedNothingElseWhereTheOthersCannotHoldTheBatch) {
  Server server(kUnlike, options(BalancePolicy::automatic, 80, {{0, 70}, {}}));
  server.calibrate({70, 40, 20});
  ASSERT_TRUE(server.balancer.start());
  EXPECT_FALSE(server.balancer.allow(1, {true, false}, "it is left out"));
  server.run(300);
  EXPECT_GT(server.balancer.shares()[1], 0);
}

TEST(IdleDevice, IsTriedAgainWithOneUnit) {
  BalanceOptions in_units = options(BalancePolicy::automatic, 96, {{}, {}});
  in_units.unit = 32;
  Server server({{1e-3, 1e-4}, {1.0, 1e-3}}, in_units);
  server.calibrate({96, 32});
  ASSERT_THAT(server.balancer.start()->shares, ElementsAre(96, 0));
  server.devices[1] = server.devices[0];
  server.run(60000);
  ASSERT_FALSE(server.decisions.empty());
  EXPECT_THAT(server.decisions[0].reason, HasSubstr("steps: its share goes from 0 to 32 samples to measure it again"));
  EXPECT_GT(server.balancer.shares()[1], 0);
}

}  // namespace
}  // namespace remuda::balance
