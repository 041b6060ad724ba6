#include "pool/testing/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class Schedule : public ScheduleTest {};

TEST_F(Schedule, StartsWhatFitsInTheOrderOfArrival) {
  for (const int count : {2, 1, 1, 1}) add("ada", count);
  EXPECT_THAT(look(), ElementsAre(1, 2, 3));
  EXPECT_EQ(job(1).state, JobState::running);
  EXPECT_EQ(job(1).started_s, 100);
  EXPECT_EQ(job(4).state, JobState::waiting);
  EXPECT_THAT(job(4).why, HasSubstr("ada (job"));
}

/// Thousands of records cannot be rewritten whenever a job starts.
TEST_F(Schedule, TellsOnlyTheHeadOfALongQueueWhatItWaitsFor) {
  add("bob", 1);
  add("ada", 3);
  look();
  for (int i = 0; i < 100; ++i) add("eve", 2);
  look();
  EXPECT_THAT(job(3).why, HasSubstr("bob (job 1)"));
  EXPECT_EQ(job(60).why, "32 jobs or more are before it in the queue");
  const PoolState before = state;
  finish(1, 200);
  add("cat", 1, 200);
  EXPECT_THAT(look(200), ElementsAre(103));
  int changed = 0;
  for (const Job& old : before.jobs) changed += old.state == JobState::waiting && old != job(old.id);
  EXPECT_EQ(changed, 32);
  EXPECT_THAT(job(3).why, HasSubstr("cat (job 103)"));
}

/// A pass would take as long as one user likes.
TEST_F(Schedule, TriesOnlySoManyUnlikeRequestsOfAUser) {
  constexpr int kTried = 64;
  add("bob", 3);
  look();
  for (int i = 0; i < kTried; ++i) {
    Job unlike = test_job("eve", 2);
    unlike.request.where = *place::Where::parse("index < " + std::to_string(1000 + i));
    add(unlike);
  }
  const int64_t behind = add("eve", 1), paused = add("eve", 1), of_another = add("ada", 1);
  state.find(paused)->paused = true;
  EXPECT_THAT(look(), ElementsAre(of_another));
  EXPECT_EQ(job(behind).why,
            "64 unlike requests of eve before it cannot be met yet, and no more of one user are tried");
  EXPECT_THAT(job(paused).why, HasSubstr("paused"));
  finish(of_another, 200);
  ASSERT_TRUE(cancel(state, 2, {0, "root"}, 200));
  EXPECT_THAT(look(200), ElementsAre(behind));
}

TEST_F(Schedule, NamesThePolicyThatCannotBeRead) {
  for (int i = 0; i < 3; ++i) add("ada", 4);
  look();
  ASSERT_TRUE(pause(state, 3, 0));
  finish(1, 200);
  hold_back(state, "policy.toml:3: limit.devices is true", 200);
  EXPECT_EQ(job(2).state, JobState::waiting);
  EXPECT_EQ(job(2).why, "no job starts while the policy is wrong: policy.toml:3: limit.devices is true");
  EXPECT_THAT(job(3).why, HasSubstr("paused")) << "that would hold it back by itself";
  EXPECT_THAT(look(200), ElementsAre(2));
}

TEST_F(Schedule, TakesLinkedPairs) {
  add("ada", 2);
  look();
  EXPECT_THAT(devices(1), ElementsAre("gpu:0", "gpu:1"));
}

TEST_F(Schedule, TellsTheOrderOfTurns) {
  for (const char* user : {"ada", "bob", "eve", "bob"}) add(user, 4);
  state.find(3)->priority = 5;
  look();
  state.usage = {{"ada", 5000, 100}};
  std::vector<int64_t> order;
  for (const Job* job : waiting_jobs(state, policy, 100)) order.push_back(job->id);
  EXPECT_THAT(order, ElementsAre(2, 4, 1)) << "job 3 runs";
}

TEST_F(Schedule, HigherPriorityGoesFirst) {
  add("ada", 4);
  Job urgent = test_job("bob", 4);
  urgent.priority = 1;
  add(urgent);
  EXPECT_THAT(look(), ElementsAre(2));
}

TEST_F(Schedule, WhoHadLessGoesFirst) {
  state.usage = {{"ada", 5000, 100}, {"bob", 10, 100}};
  add("ada", 4);
  add("bob", 4);
  EXPECT_THAT(look(), ElementsAre(2));
}

TEST_F(Schedule, WhatRunsCountsAsHad) {
  add("ada", 2);
  look();
  add("ada", 2);
  state.find(2)->request.count = 2;
  add("bob", 2);
  EXPECT_THAT(look(100), ElementsAre(2)) << "nobody had anything yet";
  finish(2, 200);
  add("ada", 2);
  EXPECT_THAT(look(200), ElementsAre(3)) << "bob's";
}

TEST_F(Schedule, SharesFillADevice) {
  for (int i = 0; i < 9; ++i) add(test_job("ada", 1, 0.5));
  EXPECT_THAT(look(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(Schedule, LeavesAloneWhatIsHeldWithoutALease) {
  foreign = {{.device = "gpu:0", .holder = "eve (process 7)"}, {.device = "gpu:1", .holder = "eve (process 7)"}};
  add("ada", 3);
  add("ada", 2);
  EXPECT_THAT(look(), ElementsAre(2));
  EXPECT_THAT(devices(2), ElementsAre("gpu:2", "gpu:3"));
  EXPECT_THAT(job(1).why, HasSubstr("eve (process 7)"));
}

TEST_F(Schedule, ATimeLimitGivesTheLeaseAnEnd) {
  Job limited = test_job("ada", 1);
  limited.time_limit_s = 60;
  add(limited);
  look();
  EXPECT_EQ(state.leases[0].until_s, 160);
}

TEST_F(Schedule, APassThatStartsNothingChangesNothing) {
  for (const int count : {4, 4, 1, 2}) add("ada", count);
  Job later = test_job("bob", 1);
  later.after = {1};
  add(later);
  look(100);
  const PoolState before = state;
  EXPECT_THAT(look(150), IsEmpty());
  EXPECT_EQ(state, before);
  look(5000);
  const PoolState after_patience = state;
  EXPECT_THAT(look(9000), IsEmpty());
  EXPECT_EQ(state, after_patience);
}

TEST_F(Schedule, LaterJobsPassUntilPatienceEnds) {
  add("ada", 2);
  look();
  add("bob", 4);
  add("eve", 1);
  EXPECT_THAT(look(), ElementsAre(3)) << "passes job 2";
  finish(3, 500);
  add("eve", 1, 1000);
  EXPECT_THAT(look(1000), IsEmpty()) << "job 2 has waited for 900 s";
  EXPECT_THAT(job(2).why, HasSubstr("kept for it"));
  EXPECT_THAT(job(4).why, HasSubstr("bob (job 2, for which it is kept)"));
  finish(1, 1100);
  EXPECT_THAT(look(1100), ElementsAre(2));
}

TEST_F(Schedule, KeepsNoMoreThanIsNeeded) {
  add("ada", 2);  // gpu:0 and gpu:1
  look();
  add("bob", 3);
  add("eve", 1);
  state.find(3)->submitted_s = 100;
  EXPECT_THAT(look(2000), IsEmpty()) << "3 of 4 are kept, and the fourth is busy";
  finish(1, 2001);
  EXPECT_THAT(look(2001), ElementsAre(2, 3));
}

TEST_F(Schedule, KeepsWhatIsSaidToEndFirst) {
  for (const double limit_s : {9000, 9000, 3000, 0}) {
    Job limited = test_job("ada", 1);
    limited.time_limit_s = limit_s;
    add(limited);
  }
  look();
  add("bob", 1);
  add("eve", 1, 1500);
  look(2000);
  EXPECT_THAT(job(5).why, HasSubstr("kept for it"));
  finish(1, 2100);
  EXPECT_THAT(look(2100), ElementsAre(5)) << "whatever comes free first";
  finish(3, 3000);
  EXPECT_THAT(look(3000), ElementsAre(6));
}

TEST_F(Schedule, StarvesNobody) {
  for (int i = 0; i < 4; ++i) add("ada", 1);
  look();
  const int64_t large = add("bob", 4);
  double now_s = 2000;
  for (int64_t running = 1; running <= 4; ++running, now_s += 10) {
    add("eve", 1, now_s);
    look(now_s);
    finish(running, now_s);
    EXPECT_EQ(job(large).state, JobState::waiting);
  }
  EXPECT_THAT(look(now_s), ElementsAre(large));
}

TEST_F(Schedule, KeepsForSomebodyWhoWaitsForADeviceHeldWithoutALease) {
  foreign = {{.device = "gpu:3", .holder = "eve (process 7)"}};
  add("ada", 3);
  look();
  add("bob", 4);
  look(2000);
  finish(1, 2000);
  add("ada", 1, 2000);
  EXPECT_THAT(look(2000), IsEmpty());
  foreign.clear();
  EXPECT_THAT(look(2001), ElementsAre(2));
}

TEST_F(Schedule, WaitsForTheJobsBefore) {
  add("ada", 1);
  Job later = test_job("ada", 1);
  later.after = {1};
  add(later);
  EXPECT_THAT(look(), ElementsAre(1));
  EXPECT_EQ(job(2).why, "job 1, which must end well before, is running");
  finish(1, 200);
  EXPECT_THAT(look(200), ElementsAre(2));
}

TEST_F(Schedule, AFailureTakesAllThatWaitForIt) {
  add("ada", 1);
  for (const int64_t before : {1, 2, 3}) {
    Job later = test_job("ada", 1);
    later.after = {before};
    add(later);
  }
  add("bob", 1);
  look();
  finish(1, 200, 1);
  look(200);
  for (const int64_t id : {2, 3, 4}) {
    EXPECT_EQ(job(id).state, JobState::ended);
    EXPECT_TRUE(job(id).cancelled);
    EXPECT_EQ(job(id).exit_status, 125);
  }
  EXPECT_EQ(job(4).why, "job 3, which had to end well before, did not");
  EXPECT_EQ(job(5).state, JobState::running);
}

TEST_F(Schedule, ADeviceThatWentAwayIsWaitedFor) {
  Job picky = test_job("ada", 1);
  picky.request.devices = {"gpu:3"};
  foreign = {{.device = "gpu:3", .holder = "eve"}};
  add(picky);
  look();
  box = test_box(2);
  EXPECT_THAT(look(5000), IsEmpty());
  EXPECT_EQ(job(1).state, JobState::waiting) << "it was promised";
  EXPECT_THAT(job(1).why, HasSubstr("no device 'gpu:3'"));
  box = test_box(4);
  foreign.clear();
  EXPECT_THAT(look(5001), ElementsAre(1));
}

TEST_F(Schedule, WhatCanNeverStartAnyMoreKeepsNothing) {
  add("ada", 4);
  box = test_box(2);
  add("bob", 2);
  EXPECT_THAT(look(5000), ElementsAre(2));
  EXPECT_THAT(job(1).why, HasSubstr("there are 2 GPUs"));
}

TEST_F(Schedule, AClockSetBackDelaysNobodyForYears) {
  add("ada", 2, 2e9);
  look(2e9);
  add("bob", 4, 2e9);
  look(1e9);
  add("eve", 1, 1e9);
  look(1e9);
  finish(3, 1e9 + 800);
  add("eve", 1, 1e9 + 901);
  EXPECT_THAT(look(1e9 + 901), IsEmpty()) << "bob has waited for 900 s since the clock was set";
}

class Preemption : public Schedule {
 protected:
  int64_t add(const std::string& user, int count, int priority, bool preemptible = true, double now_s = 100) {
    Job job = test_job(user, count);
    job.priority = priority;
    job.preemptible = preemptible;
    return Schedule::add(job, now_s);
  }
  std::vector<int64_t> making_room() {
    std::vector<int64_t> ids;
    for (const Job& job : state.jobs)
      if (job.preempted_by > 0) ids.push_back(job.id);
    return ids;
  }
};

TEST_F(Preemption, MakesRoomForHigherPriorityAndWaitsAgain) {
  add("ada", 4, 0);
  look();
  add("bob", 2, 1, false);
  EXPECT_THAT(look(), IsEmpty()) << "the processes of job 1 are there still";
  EXPECT_EQ(job(1).preempted_by, 2);
  EXPECT_THAT(job(2).why, HasSubstr("job 1 makes room for it"));
  requeue(state, 1, policy, 110);
  EXPECT_EQ(job(1).preempted_by, 0);
  EXPECT_THAT(look(110), ElementsAre(2));
  EXPECT_EQ(job(1).state, JobState::waiting);
}

TEST_F(Preemption, SparesEqualsAndThoseWhoDidNotAgree) {
  add("ada", 2, 0, false);
  add("ada", 2, 1);
  look();
  add("bob", 2, 1);
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(making_room(), IsEmpty());
  EXPECT_THAT(job(3).why, Not(HasSubstr("makes room")));
}

TEST_F(Preemption, StopsNoMoreThanItMust) {
  add("ada", 1, -1);
  add("ada", 1, -2);
  add("ada", 2, 0);
  look();
  add("bob", 1, 1);
  look();
  EXPECT_THAT(making_room(), ElementsAre(2)) << "of the lowest priority";
  const PoolState before = state;
  look(150);
  EXPECT_EQ(state, before) << "and nobody else while it ends";
}

TEST_F(Preemption, StopsNobodyWhereThatWouldNotDo) {
  add("ada", 1, 0, false);
  add("ada", 3, 0);
  look();
  add("bob", 4, 1);
  look();
  EXPECT_THAT(making_room(), IsEmpty());
}

TEST_F(Preemption, KeepsWhatIsGivenBackForTheOneItIsFor) {
  add("ada", 2, 0);
  add("ada", 2, 0);
  look();
  add("bob", 4, 2);
  look();
  EXPECT_THAT(making_room(), ElementsAre(1, 2));
  requeue(state, 1, policy, 110);
  add("eve", 1, 1);
  EXPECT_THAT(look(110), IsEmpty()) << "two are free, and kept";
  requeue(state, 2, policy, 120);
  EXPECT_THAT(look(120), ElementsAre(3));
}

TEST_F(Preemption, StopsTheLastToStartFirst) {
  add("ada", 2, 0);
  look(100);
  add("ada", 2, 0);
  look(500);
  state.find(1)->started_s = 550;  // as one that was queued again
  add("bob", 2, 1, false, 600);
  look(600);
  EXPECT_THAT(making_room(), ElementsAre(1));
}

TEST_F(Preemption, WhatMakesRoomForOneMakesItForNoOther) {
  add("ada", 2, 0);
  add("ada", 2, 0, false);
  look(100);
  add("bob", 2, 1);
  look(100);
  add("eve", 2, 2);
  look(110);
  EXPECT_EQ(job(1).preempted_by, 3);
}

}  // namespace
}  // namespace remuda::pool
