#include "monitor/idle_chain.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace remuda::monitor {
namespace {

using pool::IdleStep;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double kEvery_s = 10, kBegan_s = 1'800'000'000;

/// A machine of one GPU, a job of ada's that holds it, and the chain that looks at it each 10 seconds.
class Course {
 public:
  explicit Course(policy::Idle policy) : policy_(std::move(policy)), jobs_(policy_.warn_after_s, nobody) {
    Device device;
    device.id = "GPU-1";
    device.kind = DeviceKind::gpu;
    machine_.devices = {device};
    pool::Job job;
    job.id = 7;
    job.user = "ada";
    job.state = pool::JobState::running;
    pool_.jobs = {job};
    pool_.leases = {{.job = 7, .device = "GPU-1"}};
  }

  /// Until `change`, which is called with the minutes since the first reading of all, has been called for so long.
  void watch(double minutes, const std::function<void(double)>& change = {}) {
    for (double end_s = now_s_ + minutes * 60; now_s_ < end_s; now_s_ += kEvery_s) {
      if (change) change(now_s_ / 60);
      jobs_.look(now_s_, kBegan_s + now_s_, machine_, pool_);
      const auto told = chain_.next(jobs_, policy_, machine_, pool_, now_s_, kBegan_s + now_s_);
      for (const pool::RecordIdle& one : told) {
        if (!forgets) {
          ASSERT_TRUE(pool::apply(pool_, one, {.inventory = machine_, .policy = {}, .now_s = kBegan_s + now_s_}));
        }
        steps.emplace_back(one.notice.step, now_s_ / 60);
      }
    }
  }
  void busy(double share) {
    for (Device& device : machine_.devices) device.status.busy = share;
  }
  void hold_another() {
    machine_.devices.push_back(machine_.devices[0]);
    machine_.devices[1].id = "GPU-2";
    pool_.leases.push_back({.job = 7, .device = "GPU-2"});
  }
  pool::Job& job() { return pool_.jobs[0]; }
  Inventory& machine() { return machine_; }
  policy::Idle& policy() { return policy_; }
  void start_anew() {
    jobs_ = IdleJobs(policy_.warn_after_s, nobody);
    chain_ = {};
  }

  std::vector<std::pair<IdleStep, double>> steps;  ///< with the minute
  bool forgets = false;                            ///< what is told cannot be recorded

 private:
  static std::vector<int> nobody(const pool::Job&) { return {}; }
  policy::Idle policy_;
  IdleJobs jobs_;
  IdleChain chain_;
  Inventory machine_;
  pool::PoolState pool_;
  double now_s_ = 0;
};

policy::Idle policy(double warn_min, double signal_min, double release_min) {
  return {.warn_after_s = warn_min * 60,
          .signal_after_s = signal_min * 60,
          .release_after_s = release_min * 60,
          .exempt = {}};
}

using Steps = std::vector<std::pair<IdleStep, double>>;

TEST(IdleChain, TakesEachStepAtItsTime) {
  Course course(policy(30, 45, 60));
  course.busy(0);
  course.watch(61);
  EXPECT_EQ(course.steps, (Steps{{IdleStep::warned, 30}, {IdleStep::signalled, 45}, {IdleStep::released, 60}}));
  EXPECT_EQ(course.job().evicted, "gpu:0 busy for 0 % of 30 min");
  course.watch(60);
  EXPECT_EQ(course.steps.size(), 3U) << "it is asked to end once";
}

TEST(IdleChain, TellsAgainWhatCouldNotBeApplied) {
  Course course(policy(30, 45, 60));
  course.busy(0);
  course.watch(31);
  course.forgets = true;
  course.watch(20);
  EXPECT_GT(course.steps.size(), 10U);
  EXPECT_EQ(course.steps.back().first, IdleStep::signalled);
  course.forgets = false;
  course.watch(20);
  EXPECT_EQ(course.steps.back().first, IdleStep::released);
  EXPECT_NEAR(course.steps.back().second, 51 + 15, 0.2);
}

TEST(IdleChain, SaysWhatComesNext) {
  Course course(policy(30, 45, 90));
  course.busy(0.01);
  course.machine().devices[0].status.processes = std::vector<Process>{};
  course.watch(31);
  EXPECT_EQ(course.job().idle.text,
            "gpu:0 busy for 1 % of 30 min: no process of the job uses a GPU; unless work begins it is told to write a "
            "checkpoint in 15 min and ends in 1 h");
  EXPECT_EQ(course.job().idle.signal, SIGUSR1);
  course.watch(15);
  EXPECT_THAT(course.job().idle.text, HasSubstr("; unless work begins it ends in 45 min"));
}

TEST(IdleChain, LeavesOutStepsThatThePolicyDoesNotHave) {
  Course warns(policy(30, 0, 0));
  warns.busy(0);
  warns.watch(300);
  EXPECT_EQ(warns.steps, (Steps{{IdleStep::warned, 30}}));
  EXPECT_THAT(warns.job().idle.text, Not(HasSubstr("unless")));
  Course ends(policy(30, 0, 40));
  ends.busy(0);
  ends.watch(300);
  EXPECT_EQ(ends.steps, (Steps{{IdleStep::warned, 30}, {IdleStep::released, 40}}));
  Course nothing(policy(0, 0, 0));
  nothing.busy(0);
  nothing.watch(300);
  EXPECT_EQ(nothing.steps, Steps{});
}

TEST(IdleChain, BeginsAnewWhenTheJobWorksAgain) {
  Course course(policy(30, 45, 60));
  course.watch(100, [&](double minute) { course.busy(minute >= 50 && minute < 55 ? 1 : 0); });
  ASSERT_GE(course.steps.size(), 4U);
  EXPECT_EQ(course.steps[2].first, IdleStep::none);
  EXPECT_NEAR(course.steps[2].second, 51.5, 0.5) << "5 % of the half hour";
  EXPECT_EQ(course.steps[3].first, IdleStep::warned);
  EXPECT_GT(course.steps[3].second, 80);
  EXPECT_EQ(course.job().evicted, "");
}

TEST(IdleChain, CatchesOneThatWorksBrieflyAndSleeps) {
  Course course(policy(30, 0, 60));
  course.watch(61, [&](double minute) { course.busy(static_cast<int>(minute * 6) % 60 == 0 ? 1 : 0); });
  EXPECT_EQ(course.steps, (Steps{{IdleStep::warned, 30}, {IdleStep::released, 60}}));
}

TEST(IdleChain, SparesWhoIsExemptAndWhatIsNotKnown) {
  policy::Idle sparing = policy(30, 45, 60);
  sparing.exempt.users = {"ada"};
  Course exempt(sparing);
  exempt.busy(0);
  exempt.watch(200);
  EXPECT_EQ(exempt.steps, Steps{});
  sparing.exempt = {.users = {}, .groups = {"lab"}};
  Course in_group(sparing);
  in_group.job().groups = {"users", "lab"};
  in_group.busy(0);
  in_group.watch(200);
  EXPECT_EQ(in_group.steps, Steps{});
  Course unknown(policy(30, 45, 60));
  unknown.watch(200);
  EXPECT_EQ(unknown.steps, Steps{});
  Course lost(policy(30, 45, 60));
  lost.watch(200, [&](double minute) {
    lost.busy(0);
    if (minute > 40) lost.machine().devices[0].status.busy = Missing{MissingReason::lost, "it fell off"};
  });
  EXPECT_EQ(lost.steps.back().first, IdleStep::none);
}

TEST(IdleChain, TakesNoStepEarlyAfterAStartOrAnotherPolicy) {
  Course course(policy(30, 45, 60));
  course.busy(0);
  course.watch(31);
  course.start_anew();
  course.watch(60);
  EXPECT_EQ(course.steps, (Steps{{IdleStep::warned, 30}, {IdleStep::signalled, 61}, {IdleStep::released, 76}}));
  Course stricter(policy(30, 0, 600));
  stricter.busy(0);
  stricter.watch(100);
  stricter.policy().release_after_s = 31 * 60;
  stricter.watch(10);
  EXPECT_EQ(stricter.steps.size(), 2U) << "it was warned long ago";
  Course dropped(policy(30, 45, 60));
  dropped.busy(0);
  dropped.watch(31);
  dropped.policy() = {};
  dropped.watch(1);
  EXPECT_EQ(dropped.job().idle, pool::IdleNotice{});
}

TEST(IdleChain, SparesAJobThatWaitsForOthersOfItsRun) {
  Course course(policy(30, 45, 60));
  course.busy(0);
  const auto heard = [&](double minute, double waiting) {
    course.job().run = {.at_s = kBegan_s + minute * 60, .step = 1, .step_s = 20, .parts = {{"GPU-1", 0.5, waiting}}};
  };
  course.watch(200, [&](double minute) { heard(minute, 0.95); });
  EXPECT_EQ(course.steps, Steps{});
  course.watch(200);
  ASSERT_FALSE(course.steps.empty()) << "its run says nothing any more";
  EXPECT_GT(course.steps[0].second, 200 + 15);
  Course computes(policy(30, 45, 60));
  computes.busy(0);
  computes.watch(61, [&](double minute) {
    computes.job().run = {.at_s = kBegan_s + minute * 60, .step_s = 20, .parts = {{"GPU-1", 0.5, 0.1}}};
  });
  EXPECT_EQ(computes.steps.size(), 3U) << "it does not wait";
  Course silent(policy(30, 45, 60));
  silent.busy(0);
  silent.watch(61, [&](double minute) { silent.job().run = {.at_s = kBegan_s + minute * 60, .step = 1}; });
  EXPECT_EQ(silent.steps.size(), 3U) << "it says nothing of waiting";
}

TEST(IdleChain, LeavesAJobThatIsToEndAlone) {
  const std::vector<std::function<void(pool::Job&)>> ends{[](pool::Job& job) { job.cancelled = true; },
                                                          [](pool::Job& job) { job.preempted_by = 8; },
                                                          [](pool::Job& job) { job.evicted = "the cloud takes it"; }};
  for (const auto& is_to_end : ends) {
    Course course(policy(30, 45, 60));
    course.busy(0);
    is_to_end(course.job());
    course.watch(100);
    EXPECT_EQ(course.steps, Steps{});
  }
}

TEST(IdleChain, SpeaksOfAllDevicesOfAJob) {
  Course course(policy(30, 0, 0));
  course.hold_another();
  course.busy(0);
  course.watch(31);
  EXPECT_EQ(course.job().idle.text, "2 devices busy for 0 % of 30 min");
}

/// Whatever a job does: its steps are in order, each has its time behind the one before, and none is taken while it has
/// worked for the floor's part of the window.
RC_GTEST_PROP(IdleChainProperty, NoStepIsSkippedOrEarly, ()) {
  const int warn = *rc::gen::inRange(2, 40), signal = *rc::gen::element(0, warn + 7);
  const int release = *rc::gen::element(0, warn + 20);
  const auto works =
      *rc::gen::container<std::vector<bool>>(30, rc::gen::weightedElement<bool>({{4, false}, {1, true}}));
  Course course(policy(warn, signal, release));
  course.watch(300,
               [&](double minute) { course.busy(works[static_cast<size_t>(minute / 10) % works.size()] ? 1 : 0); });
  constexpr double kRounding = 1e-6;
  std::pair<IdleStep, double> before{IdleStep::none, 0};
  for (const auto& [step, minute] : course.steps) {
    if (step == IdleStep::warned) {
      RC_ASSERT(before.first == IdleStep::none);
      RC_ASSERT(minute - before.second >= (before.second > 0 ? 0 : warn));
    }
    if (step == IdleStep::signalled) {
      RC_ASSERT(before.first == IdleStep::warned);
      RC_ASSERT(minute - before.second >= signal - warn - kRounding);
    }
    if (step == IdleStep::released) {
      RC_ASSERT(before.first == (signal > 0 ? IdleStep::signalled : IdleStep::warned));
      RC_ASSERT(minute - before.second >= release - (signal > 0 ? signal : warn) - kRounding);
    }
    double worked = 0;  // minutes of the window
    for (double at = minute - warn; at < minute; at += kEvery_s / 60)
      if (at >= 0 && works[static_cast<size_t>(at / 10) % works.size()]) worked += kEvery_s / 60;
    constexpr double kParts = 30;  // of a window, the first and the last of which are in it in part, as are readings
    if (step != IdleStep::none) RC_ASSERT(worked <= warn * (0.05 + 2 / kParts) + 2 * kEvery_s / 60);
    before = {step, minute};
  }
}

}  // namespace
}  // namespace remuda::monitor
