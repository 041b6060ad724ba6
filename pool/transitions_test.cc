#include "pool/transitions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pool/testing/transitions.h"

namespace remuda::pool {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kDay = 86400;

class Transitions : public TransitionsTest {};

TEST_F(Transitions, SubmitGivesAscendingNumbers) {
  EXPECT_EQ(add("ada", 1), 1);
  EXPECT_EQ(add("ada", 1), 2);
  EXPECT_EQ(state.next_job, 3);
  EXPECT_EQ(job(2).state, JobState::waiting);
  EXPECT_EQ(job(2).submitted_s, 100);
}

TEST_F(Transitions, SubmitRefusesWhatTheMachineNeverHas) {
  EXPECT_EQ(refusal(test_job("ada", 5)), "there are 4 GPUs on box; 5 are wanted");
  Job job = test_job("ada", 1);
  job.request.devices = {"gpu:9"};
  EXPECT_THAT(refusal(job), HasSubstr("no device 'gpu:9'"));
  EXPECT_THAT(state.jobs, IsEmpty());
}

TEST_F(Transitions, SubmitTakesWhatIsOnlyBusy) {
  add("ada", 4);
  look();
  EXPECT_EQ(add("bob", 4), 2);
}

TEST_F(Transitions, SubmitRefusesToWaitForNobodyAndForTheFailed) {
  Job later = test_job("ada", 1);
  later.after = {7};
  EXPECT_EQ(refusal(later), "there is no job 7 to wait for");
  add("ada", 1);
  end(state, 1, {.exit_status = 3, .why = "exit status 3"}, policy, 101);
  later.after = {1};
  EXPECT_EQ(refusal(later), "job 1, which should end well before, did not: exit status 3");
  ++later.uid;
  EXPECT_EQ(refusal(later), "job 1, which should end well before, did not: it failed") << "another user's";
}

TEST_F(Transitions, SubmitKeepsForeignTextHarmless) {
  Job foreign = test_job("ada", 1);
  foreign.name = "a\x1b[31mb\xff";
  foreign.command = {"python", "-c", "import os\nprint()", std::string(10000, 'x'), std::string(4092, 'y') + "äää"};
  foreign.folder = "/home/a\nda";
  add(foreign);
  EXPECT_EQ(job(1).name, "a?[31mb?");
  EXPECT_EQ(job(1).command[2], "import os?print()");
  EXPECT_EQ(job(1).command[3], std::string(4093, 'x') + "...");
  EXPECT_EQ(job(1).command[4], std::string(4092, 'y') + "...");
  EXPECT_EQ(job(1).folder, "/home/a?da");
  const auto back = parse_job(*parse_json(to_line(to_json(job(1))), "text"), "job");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, job(1));
}

TEST_F(Transitions, SubmitCutsEndlessCommands) {
  Job endless = test_job("ada", 1);
  endless.command.assign(100000, "file");
  add(endless);
  EXPECT_THAT(job(1).command, SizeIs(256));
  EXPECT_EQ(job(1).command.back(), "...");
}

TEST_F(Transitions, SubmitRefusesALogThatCannotBeNamed) {
  Job job = test_job("ada", 1);
  job.log = "/tmp/a\nb";
  EXPECT_EQ(refusal(job), "the job.log holds control characters");
  EXPECT_EQ(state.next_job, 1);
}

TEST_F(Transitions, EndGivesBackAndCounts) {
  add("ada", 2);
  look();
  EXPECT_THAT(state.leases, SizeIs(2));
  end(state, 1, {.exit_status = 3, .signal = 0, .why = "exit status 3"}, policy, 150);
  EXPECT_THAT(state.leases, IsEmpty());
  EXPECT_EQ(job(1).state, JobState::ended);
  EXPECT_EQ(job(1).exit_status, 3);
  EXPECT_EQ(job(1).ended_s, 150);
  EXPECT_NEAR(usage_of(state, "ada", policy, 150), 100, 0.1);
  end(state, 1, {.exit_status = 0}, policy, 160);
  EXPECT_EQ(job(1).exit_status, 3) << "it has ended already";
  end(state, 99, {}, policy, 160);
}

TEST_F(Transitions, WhatIsToldLaterIsChargedUntilItWas) {
  const auto end_at = [&](double said_s) {
    state = {};
    add("ada", 2);
    look();
    end(state, 1, {.ended_s = said_s}, policy, 1000);
    return job(1).ended_s;
  };
  EXPECT_EQ(end_at(150), 150);
  EXPECT_NEAR(usage_of(state, "ada", policy, 1000), 100, 0.2) << "faded since";
  EXPECT_NEAR(spent_s(state, "ada", 1000), 100, 0.1);
  EXPECT_EQ(end_at(20), 100) << "it had not started";
  EXPECT_EQ(end_at(5000), 1000) << "that is yet to come";
  EXPECT_NEAR(spent_s(state, "ada", 1000), 1800, 0.1);
  EXPECT_EQ(end_at(0), 1000);
}

TEST_F(Transitions, UsageFadesByHalfInAHalfLife) {
  state.usage = {{"ada", 1000, 100}};
  EXPECT_NEAR(usage_of(state, "ada", policy, 100 + 7 * kDay), 500, 1e-6);
  EXPECT_NEAR(usage_of(state, "ada", policy, 100 + 14 * kDay), 250, 1e-6);
  EXPECT_EQ(usage_of(state, "bob", policy, 100), 0);
}

TEST_F(Transitions, WhatWasChargedBeforeFadesWhereMoreIsCharged) {
  state.usage = {{"ada", 1000, 100 - 7 * kDay}};
  add("ada", 1);
  look();
  end(state, 1, {}, policy, 100);
  EXPECT_NEAR(usage_of(state, "ada", policy, 100), 500, 1e-6);
}

TEST_F(Transitions, UsageCountsWhatRunsNow) {
  Job half = test_job("ada", 2, 0.5);
  add(half);
  look();
  EXPECT_NEAR(usage_of(state, "ada", policy, 200), 100, 0.1);
}

TEST_F(Transitions, UsageOfEndlessTimeIsBounded) {
  add("ada", 1);
  look();
  const double century_s = 36500 * kDay;
  EXPECT_LT(usage_of(state, "ada", policy, 100 + century_s), 10.2 * kDay);
  EXPECT_GT(usage_of(state, "ada", policy, 100 + century_s), 10 * kDay);
}

TEST_F(Transitions, RequeueKeepsThePlace) {
  add("ada", 4);
  look();
  add("bob", 4);
  state.find(1)->processes = {process::own_process_id()};
  requeue(state, 1, policy, 200);
  EXPECT_EQ(job(1).state, JobState::waiting);
  EXPECT_EQ(job(1).submitted_s, 100);
  EXPECT_EQ(job(1).started_s, 0);
  EXPECT_EQ(job(1).restarts, 1);
  EXPECT_THAT(job(1).processes, IsEmpty());
  EXPECT_THAT(state.leases, IsEmpty());
  EXPECT_GT(usage_of(state, "ada", policy, 200), 300);
  requeue(state, 2, policy, 200);
  EXPECT_EQ(job(2).restarts, 0) << "it does not run";
}

TEST_F(Transitions, RequeueEndsACancelledJob) {
  add("ada", 1);
  look();
  ASSERT_TRUE(cancel(state, 1, {0, "root"}, 150));
  requeue(state, 1, policy, 200);
  EXPECT_EQ(job(1).state, JobState::ended);
  EXPECT_FALSE(succeeded(job(1)));
}

TEST_F(Transitions, OnlyAJobOfOnesOwnThatRunsIsEntered) {
  const auto refusal = [](const Job& job, int uid) {
    const auto entered = check_enter(job, uid);
    return entered ? "" : entered.error().message;
  };
  Job job{.id = 7, .user = "ada", .uid = 1000, .state = JobState::running};
  EXPECT_EQ(refusal(job, 1000), "");
  EXPECT_EQ(refusal(job, 1001), "job 7 belongs to ada");
  EXPECT_EQ(refusal(job, 0),
            "job 7 belongs to ada, whose commands alone join it, and not root's: sudo -u ada remuda exec 7 -- COMMAND");
  job.state = JobState::waiting;
  EXPECT_EQ(refusal(job, 1000), "job 7 still waits: only one that runs can be entered");
  job.state = JobState::ended;
  EXPECT_EQ(refusal(job, 1000), "job 7 has ended: only one that runs can be entered");
  job.array = 7;
  EXPECT_EQ(refusal(job, 1000), "job 7 is an array: name one of its jobs, as 7.0");
}

TEST_F(Transitions, SubmitRefusesToWaitForAnyEndOfNobody) {
  Job later = test_job("ada", 1);
  later.after_any = {7};
  EXPECT_EQ(refusal(later), "there is no job 7 to wait for");
  add("ada", 1);
  end(state, 1, {.exit_status = 1}, policy, 200);
  later.after_any = {1, 1};
  EXPECT_THAT(job(add(later)).after_any, ElementsAre(1));
}

TEST_F(Transitions, ReapEndsWhatNobodyKeeps) {
  add("ada", 1);
  add("bob", 1);
  look();
  add("eve", 4);
  const auto dead = [](const process::ProcessId&) { return false; };
  const auto none = [](const Job&) { return false; };
  EXPECT_THAT(reap(state, dead, none, policy, 200), IsEmpty());
  for (const Job& reaped : state.jobs) {
    EXPECT_EQ(reaped.state, JobState::ended);
    EXPECT_EQ(reaped.exit_status, 125);
    EXPECT_EQ(reaped.why, "the process that kept it is gone");
  }
  EXPECT_THAT(state.leases, IsEmpty());
}

TEST_F(Transitions, ReapSparesTheKeptAndNamesOrphans) {
  for (const char* user : {"ada", "bob", "eve"}) add(user, 1);
  look();
  for (const Job& one : state.jobs) state.jobs.edit(one).keeper.pid = static_cast<int>(one.id);
  state.find(2)->processes = {process::ProcessId{.pid = 22}};
  const auto lives = [](const process::ProcessId& process) { return process.pid == 1 || process.pid == 22; };
  const auto has_orphans = [](const Job& job) { return job.id == 3; };
  EXPECT_THAT(reap(state, lives, has_orphans, policy, 200), ElementsAre(2, 3));
  for (const Job& one : state.jobs) EXPECT_EQ(one.state, JobState::running);
}

TEST_F(Transitions, ReapAsksNobodyAboutTheKept) {
  add("ada", 1);
  look();
  bool asked = false;
  reap(state, [](const process::ProcessId&) { return true; }, [&](const Job&) { return asked = true; }, policy, 200);
  EXPECT_FALSE(asked);
}

TEST_F(Transitions, AClockSetBackMakesNoTimeNegativeAndEndsNothingEarly) {
  Job limited = test_job("ada", 1);
  limited.time_limit_s = 600;
  add(limited, 1e9);
  add(test_job("bob", 4), 1e9);
  look(1e9);
  state.usage = {{"bob", 1000, 1e9}};
  look(5000);
  EXPECT_EQ(job(1).started_s, 5000);
  EXPECT_EQ(state.leases[0].since_s, 5000);
  EXPECT_EQ(state.leases[0].until_s, 5600) << "as long as before";
  EXPECT_EQ(job(2).submitted_s, 5000);
  EXPECT_EQ(usage_of(state, "ada", policy, 5000), 0);
  EXPECT_EQ(usage_of(state, "bob", policy, 5000), 1000);
  end(state, 1, {}, policy, 4000);
  EXPECT_EQ(job(1).started_s, 4000);
  EXPECT_EQ(job(1).ended_s, 4000);
  EXPECT_EQ(usage_of(state, "ada", policy, 4000), 0);
}

TEST_F(Transitions, HeldByLeasesNamesTheHolder) {
  Job limited = test_job("ada", 1, 0.5);
  limited.time_limit_s = 600;
  add(limited);
  look();
  const auto held = held_by_leases(state);
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_EQ(held[0].device, state.leases[0].device);
  EXPECT_EQ(held[0].share, 0.5);
  EXPECT_EQ(held[0].holder, "ada (job 1)");
  EXPECT_EQ(held[0].since_s, 100);
  EXPECT_EQ(held[0].until_s, 700);
}

TEST(Check, SaysWhatIsBroken) {
  PoolState good;
  good.next_job = 3;
  good.jobs = {test_job("ada", 1), test_job("bob", 1)};
  good.jobs[0].id = 1;
  good.jobs[1].id = 2;
  good.jobs[0].state = JobState::running;
  good.leases = {{.job = 1, .device = "gpu:0"}};
  EXPECT_EQ(check(good), "");
  const auto broken = [&](const std::function<void(PoolState&)>& breaks) {
    PoolState state = good;
    breaks(state);
    return check(state);
  };
  EXPECT_EQ(broken([](PoolState& s) { s.jobs[1].id = 1; }), "job 1 stands behind job 1");
  EXPECT_EQ(broken([](PoolState& s) { s.next_job = 2; }), "the next job would be 2, and 2 is there");
  EXPECT_EQ(broken([](PoolState& s) { s.leases.clear(); }), "job 1 is running and holds 0 devices, not 1");
  EXPECT_EQ(broken([](PoolState& s) { s.leases[0].job = 2; }), "job 1 is running and holds 0 devices, not 1");
  EXPECT_EQ(broken([](PoolState& s) { s.leases.push_back({.job = 2, .device = "gpu:1"}); }),
            "job 2 is waiting and holds 1 devices, not 0");
  EXPECT_EQ(broken([](PoolState& s) { s.leases.push_back({.job = 9, .device = "gpu:1"}); }),
            "gpu:1 is held for job 9, which is not there");
  EXPECT_EQ(broken([](PoolState& s) { s.leases[0].share = 0; }), "0 of gpu:0 is held");
  EXPECT_EQ(broken([](PoolState& s) {
              s.jobs[1].state = JobState::running;
              s.leases.push_back({.job = 2, .device = "gpu:0", .share = 0.1});
            }),
            "gpu:0 has two owners, job 2 among them");
  EXPECT_EQ(broken([](PoolState& s) {
              s.jobs[0].request.count = 2;
              s.leases = {{.job = 1, .device = "gpu:0", .share = 0.5}, {.job = 1, .device = "gpu:0", .share = 0.5}};
            }),
            "job 1 holds gpu:0 twice");
}

TEST_F(Transitions, AnArrayGetsNoDevices) {
  const int64_t array = make_array(state, add("ada", 2));
  Job first = test_job("ada", 2);
  first.array = array;
  const int64_t id = add(first);
  EXPECT_THAT(look(), ElementsAre(id));
  EXPECT_EQ(job(array).state, JobState::waiting);
  end(state, id, {}, policy, 110);
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(Transitions, AHolderIsNamedAsPeopleNameItsJob) {
  const int64_t first = add("ada", 1), second = add("bob", 1);
  look();
  state.find(second)->array = 5;
  state.find(second)->array_index = 7;
  const auto held = held_by_leases(state);
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held[0].holder, fmt::format("ada (job {})", first));
  EXPECT_EQ(held[1].holder, "bob (job 5.7)");
}

TEST_F(Transitions, AfterAnArrayMeansAfterAllOfIt) {
  const int64_t array = make_array(state, add("ada", 1));
  Job later = test_job("ada", 1);
  later.after = {array};
  const int64_t id = add(later);
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(job(id).why, HasSubstr("array 1, which must end well before"));
  end(state, array, {}, policy, 110);
  EXPECT_THAT(look(), ElementsAre(id));
}

}  // namespace
}  // namespace remuda::pool
