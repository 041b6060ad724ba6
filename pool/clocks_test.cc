#include "pool/clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pool/testing/schedule.h"

namespace remuda::pool {
namespace {

constexpr double kWeek_s = 7 * 86400, kNow_s = 1000 * kWeek_s;

/// A machine that was started as the test began.
class ClocksTest : public ScheduleTest {
 protected:
  /// What a pool does around a change, `passed_s` after the start, with a wall clock that is `ahead_s` ahead.
  template <typename Change>
  void change(double passed_s, double ahead_s, const Change& change) {
    const Clocks clocks{kNow_s + passed_s + ahead_s, passed_s, boot};
    follow_clocks(state, clocks);
    change(clocks.wall_s);
    note_clocks(state, clocks);
    EXPECT_EQ(check(state), "");
  }
  void start(double passed_s, double ahead_s) {
    change(passed_s, ahead_s, [&](double now_s) {
      add("ada", 1, now_s);
      look(now_s);
    });
  }
  void end_at(double passed_s, double ahead_s) {
    change(passed_s, ahead_s, [&](double now_s) { finish(state.jobs.back().id, now_s); });
  }
  double charged(double passed_s, double ahead_s) {
    return usage_of(state, "ada", policy, kNow_s + passed_s + ahead_s);
  }

  std::string boot = "first";
};

TEST_F(ClocksTest, AJobIsChargedForTheTimeThatHasPassedHoweverTheClockIsSet) {
  for (const double at_start_s : {-kWeek_s, 0.0, kWeek_s}) {
    for (const double at_end_s : {-kWeek_s, 0.0, kWeek_s}) {
      state = {};
      start(100, at_start_s);
      end_at(104, at_end_s);
      EXPECT_NEAR(charged(104, at_end_s), 4, 0.01);
      EXPECT_NEAR(spent_s(state, "ada", kNow_s + 104 + at_end_s), 4, 0.01);
      EXPECT_NEAR(job(1).ended_s - job(1).started_s, 4, 0.01);
    }
  }
}

TEST_F(ClocksTest, ALimitAndWhatWasUsedBeforeMoveWithTheClock) {
  state.usage = {{"ada", 1000, kNow_s}};
  start(100, -kWeek_s);
  change(101, 0, [](double) {});
  EXPECT_NEAR(charged(101, 0), 1001, 1) << "that is no week ago";
  EXPECT_NEAR(state.leases.at(0).since_s, kNow_s + 100, 0.01);
}

TEST_F(ClocksTest, WhatADaemonTakesBackSlowlyChangesNothing) {
  start(100, 0);
  const PoolState before = state;
  change(200, 0.5, [](double) {});
  EXPECT_EQ(state, before);
}

TEST_F(ClocksTest, AnotherStartOfTheMachineIsNoSettingOfItsClock) {
  start(100, 0);
  const PoolState before = state;
  boot = "second";
  change(5, 300, [](double) {});
  EXPECT_EQ(state.leases, before.leases);
  EXPECT_EQ(job(1).started_s, before.jobs.front().started_s);
  change(6, 300 + kWeek_s, [](double) {});
  EXPECT_NEAR(job(1).started_s, before.jobs.front().started_s + kWeek_s, 0.01) << "of which it was not told before";
}

TEST_F(ClocksTest, EachTurnOfAJobHasAClockOfItsOwn) {
  start(100, -kWeek_s);
  change(200, 0, [&](double now_s) { requeue(state, 1, policy, now_s); });
  change(300, kWeek_s, [&](double now_s) { look(now_s); });
  const double before = charged(300, kWeek_s);
  end_at(304, 0);
  EXPECT_LT(charged(304, 0) - before, 105) << "four seconds more, and no week";
}

TEST_F(ClocksTest, WhatWaitsMovesToo) {
  start(100, 0);
  change(101, 0, [&](double now_s) { add("bob", 4, now_s); });
  const double before_s = job(2).submitted_s;
  change(102, kWeek_s, [](double) {});
  EXPECT_NEAR(job(2).submitted_s, before_s + kWeek_s, 0.01) << "it has waited for a second";
}

TEST_F(ClocksTest, SmallStepsThatAddUpMoveWhatWasUsedOnce) {
  start(100, 0);
  change(101, 0.7, [&](double now_s) { add("bob", 1, now_s), look(now_s); });
  state.usage = {{"eve", 1000, kNow_s}};
  for (int step = 1; step <= 10; ++step) change(101 + step, 0.7 + 0.7 * step, [](double) {});
  EXPECT_NEAR(state.usage.at(0).at_s, kNow_s + 7.7, 1.5);
}

TEST_F(ClocksTest, ALeaseBeganWhenItDid) {
  start(100, 0);
  const double began = began_s(state, state.leases.at(0));
  change(101, kWeek_s, [](double) {});
  change(102, -kWeek_s, [](double) {});
  EXPECT_TRUE(is_same_beginning(began_s(state, state.leases.at(0)), began));
  EXPECT_NEAR(began, 100, 0.01);
}

TEST_F(ClocksTest, AClockThatIsWrongForAMomentTakesNobodysDays) {
  start(100, 0);
  end_at(104, 0);
  const double spent = spent_s(state, "ada", kNow_s + 104);
  EXPECT_NEAR(spent, 4, 0.01);
  change(200, 8 * 86400, [&](double now_s) { add("ada", 1, now_s), look(now_s); });
  end_at(204, 8 * 86400);
  EXPECT_NEAR(spent_s(state, "ada", kNow_s + 300), spent, 0.01);
}

}  // namespace
}  // namespace remuda::pool
