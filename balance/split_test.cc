// The law on devices as they were measured, against all ways to share a step out.
#include "balance/split.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "balance/testing/all_splits.h"

namespace remuda::balance {
namespace {

using namespace testing;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(Split, GivesSamplesAndStateToEachByItsSpeed) {
  const std::vector<SplitDevice> devices{{.compute = {0, 1e-3}, .update_s = 10e-3},
                                         {.compute = {0, 3e-3}, .update_s = 30e-3}};
  const auto split = best_split(devices, {.batch = 64});  // shares 48 and 16, state 0.75 and 0.25
  ASSERT_TRUE(split);
  EXPECT_THAT(split->shares, ElementsAre(48, 16));
  EXPECT_THAT(split->state, ElementsAre(DoubleNear(0.75, 1e-9), DoubleNear(0.25, 1e-9)));
  EXPECT_NEAR(split->step_s, 48e-3 + 7.5e-3, 1e-9);
}

/// Of a run of mlp with hidden = [2048, 2048] and AdamW on two cores: 24 ms for 64 samples, 16 ms for an update.
SplitDevice mlp_on_cpu(double slowdown) {
  return {.compute = {1 * kMilli * slowdown, 0.36 * kMilli * slowdown},
          .update_s = 16 * kMilli * slowdown,
          .exchange_s = 7 * kMilli,
          .receive_s = 1 * kMilli};
}

TEST(Split, LeavesASlowDeviceOutWhoseExchangeCostsMoreThanItGives) {
  for (const double slowdown : {8.0, 16.0}) {
    const std::vector<SplitDevice> devices{mlp_on_cpu(1), mlp_on_cpu(slowdown)};
    std::vector<SplitDevice> alone = devices;
    alone[0].exchange_s = alone[0].receive_s;  // who is alone has nobody to send to
    const auto split = best_split(alone, {.batch = 64});
    ASSERT_TRUE(split);
    EXPECT_TRUE(split->leaves_out(1)) << slowdown;
    EXPECT_THAT(split->state, ElementsAre(1, 0));
    EXPECT_THAT(split->shares, ElementsAre(64, 0));
    EXPECT_NEAR(split->step_s, (1 + 64 * 0.36 + 1 + 16) * kMilli, 1e-9) << "parameters are received all the same";
  }
}

TEST(Split, KeepsADeviceWhoseExchangeIsWorthIt) {
  const auto split = best_split(std::vector{mlp_on_cpu(1), mlp_on_cpu(1)}, {.batch = 64});
  ASSERT_TRUE(split);
  EXPECT_THAT(split->shares, ElementsAre(32, 32));
  EXPECT_THAT(split->state, ElementsAre(0.5, 0.5));
}

TEST(Split, HoldsStateThatIsGiven) {
  SplitTask task{.batch = 64};
  task.state_given = {0.25, 0.75};
  const auto split = best_split(std::vector{mlp_on_cpu(1), mlp_on_cpu(8)}, task);
  ASSERT_TRUE(split);
  EXPECT_THAT(split->state, ElementsAre(0.25, 0.75));
  EXPECT_NEAR(split->update_s, 0.75 * 8 * 16 * kMilli, 1e-9);
}

TEST(Split, HasNoneWhereTheBatchDoesNotFit) {
  SplitDevice small = mlp_on_cpu(1);
  small.samples.high = 30;
  EXPECT_FALSE(best_split(std::vector{small, small}, {.batch = 64}));
  EXPECT_TRUE(best_split(std::vector{small, small}, {.batch = 60}));
}

TEST(Split, TakesAnUnknownUpdateForTheSlowest) {
  SplitDevice unknown = mlp_on_cpu(1);
  unknown.update_s = 0;
  const auto split = best_split(std::vector{mlp_on_cpu(3), unknown}, {.batch = 64});
  EXPECT_THAT(split->state, ElementsAre(0.5, 0.5));
}

TEST(Split, StaysAMemberWithoutADeviceThatIsLeftOut) {
  const std::vector<SplitDevice> devices{mlp_on_cpu(1), mlp_on_cpu(1)};
  const auto split = best_split(without(devices, 0), {.batch = 64});
  ASSERT_TRUE(split);
  EXPECT_TRUE(split->leaves_out(0));
  EXPECT_THAT(split->shares, ElementsAre(0, 64));
}

/// Of five kinds, as they were measured: two CPUs, one slowed, one that is reached through a slow link; two cards, one
/// with little memory.
std::vector<SplitDevice> kinds() {
  SplitDevice far = mlp_on_cpu(2);
  far.exchange_s = 60 * kMilli;
  far.receive_s = 25 * kMilli;
  const SplitDevice card{.compute = {3 * kMilli, 0.04 * kMilli},
                         .update_s = 1.5 * kMilli,
                         .exchange_s = 9 * kMilli,
                         .receive_s = 4 * kMilli};
  SplitDevice small = card;
  small.compute.fixed_s = 6 * kMilli;
  small.room_bytes = 200 * kMebi;
  small.held_bytes = 60 * kMebi;
  small.fixed_bytes = 5 * kMebi;
  small.sample_bytes = 3 * kMebi;
  return {mlp_on_cpu(1), mlp_on_cpu(8), far, card, small};
}

void expect_near_the_best(const std::vector<SplitDevice>& devices, int batch, int parts) {
  const SplitTask task{.batch = batch, .state = {50 * kMebi, 100 * kMebi}};
  const auto split = best_split(devices, task);
  const double least_s = least_step_s(devices, task, parts);
  ASSERT_EQ(split.has_value(), std::isfinite(least_s));
  if (!split) return;
  EXPECT_NEAR(split->step_s, step_s(devices, task, split->shares, split->state), 1e-12);
  EXPECT_GE(least_s / split->step_s, 0.99)
      << ::testing::PrintToString(split->shares) << ::testing::PrintToString(split->state);
}

/// Each choice of so many of these kinds, each as often as one likes.
void for_each_choice(size_t count, const std::function<void(const std::vector<SplitDevice>&)>& visit) {
  const std::vector<SplitDevice> all = kinds();
  std::vector<SplitDevice> chosen;
  const std::function<void(size_t)> choose = [&](size_t from) {
    if (chosen.size() == count) return visit(chosen);
    for (size_t i = from; i < all.size(); ++i) {
      chosen.push_back(all[i]);
      choose(i);
      chosen.pop_back();
    }
  };
  choose(0);
}

TEST(SplitAgainstAllOthers, OfTwoDevices) {
  for (const int batch : {1, 7, 64})
    for_each_choice(2, [&](const auto& devices) { expect_near_the_best(devices, batch, 64); });
}

TEST(SplitAgainstAllOthers, OfThreeDevices) {
  for_each_choice(3, [&](const auto& devices) { expect_near_the_best(devices, 24, 16); });
}

TEST(SplitAgainstAllOthers, OfFourDevices) {
  for_each_choice(4, [&](const auto& devices) { expect_near_the_best(devices, 14, 8); });
}

/// A device that updates fast has room for half of the state by the line over samples, and for none by what a single
/// sample was measured to take.
TEST(Split, LeavesRoomForTheLeastThatASampleTakes) {
  SplitDevice fast{.compute = {0, kMilli}, .update_s = kMilli};
  fast.room_bytes = 100 * kMebi;
  fast.sample_bytes = kMebi;
  fast.least_bytes = 100 * kMebi;
  const SplitDevice slow{.compute = {0, 20 * kMilli}, .update_s = 20 * kMilli};
  const SplitTask task{.batch = 20, .state = {0, 100 * kMebi}};
  const auto split = best_split(std::vector{fast, slow}, task);
  ASSERT_TRUE(split);
  EXPECT_GT(split->shares[0], 0);
  EXPECT_EQ(split->state[0], 0);
  fast.least_bytes = 0;
  EXPECT_GT(best_split(std::vector{fast, slow}, task)->state[0], 0.3);
}

}  // namespace
}  // namespace remuda::balance
