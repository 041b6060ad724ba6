#include "pool/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pool/testing/pool.h"

namespace remuda::pool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OperationTest : public testing::Test {
 protected:
  Result<Applied> ask(const Operation& operation, int uid = 0) {
    return apply(state_, operation, {.inventory = box_, .policy = {}, .uid = uid, .now_s = 100});
  }
  int64_t submitted(Job job) {
    const auto applied = ask(Submit{.job = std::move(job)});
    EXPECT_TRUE(applied) << applied.error().message;
    return applied ? applied->job : 0;
  }
  int64_t running(Job job) {
    const int64_t id = submitted(std::move(job));
    schedule(state_, box_, {}, {}, 100);
    EXPECT_EQ(state_.find(id)->state, JobState::running);
    return id;
  }

  const Inventory box_ = test_box(2);
  PoolState state_;
};

std::vector<Operation> one_of_each() {
  Job job = test_job("ada", 2, 0.5);
  job.request.model = "Test*";
  const process::ProcessId process = process::own_process_id();
  return {Submit{.job = job, .waits = false, .stands_for_array = true, .log_folder = "/home/ada/logs"},
          StartJobs{},
          RecordProcesses{7, {process, process}},
          RecordConfinement{7, "/sys/fs/cgroup/remuda-7", true, 3, {"quota", true, "no controller"}},
          RecordDaemons{7, {"gpu:0"}},
          Explain{7, "3 of 9 indices done"},
          CountRestart{7},
          Requeue{7},
          GiveWay{7, "gpu:0 is lost", false},
          TakeOver{7, process},
          End{7, {3, 9, "killed by signal 9", 4096}},
          Cancel{{7, 8}},
          CancelSelected{"sweep", "ada"},
          Reprioritize{{7, 8}, -3},
          Pause{{7}},
          Resume{{7}},
          DrainDevices{{"gpu:0"}, "the fan is broken", "root"},
          UndrainDevices{{"gpu:0"}},
          LeaveHost{"the cloud takes it", "spot notice"},
          RecordIdle{7, {IdleStep::warned, 100, 10, "its devices are idle"}},
          RecordRun{7, {0, 3, 9, 0.5, {{"gpu:0", 0.5, 0.25}}}}};
}

TEST_F(OperationTest, EachIsReadAsItWasWritten) {
  const auto all = one_of_each();
  ASSERT_EQ(all.size(), std::variant_size_v<Operation>);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].index(), i);
    const Json json = to_json(all[i]);
    const auto read = parse_operation(json, "request");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, all[i]) << to_line(json);
  }
}

TEST_F(OperationTest, LeavingTheHostDrainsItAndAsksWhatRunsToEnd) {
  ASSERT_TRUE(ask(DrainDevices{{"gpu:1"}, "its fan is broken", "root"}));
  const int64_t runs = running(test_job("ada", 1)), waits = submitted(test_job("ada", 1));
  ASSERT_TRUE(ask(LeaveHost{"the cloud takes it", "spot notice"}));
  ASSERT_EQ(state_.drains.size(), 2U);
  EXPECT_EQ(state_.drains[0].reason, "the cloud takes it");
  EXPECT_EQ(state_.drains[0].by, "spot notice");
  EXPECT_EQ(state_.drains[1].reason, "its fan is broken") << "what was drained stays as it was";
  EXPECT_EQ(state_.find(runs)->evicted, "the cloud takes it");
  EXPECT_EQ(state_.find(waits)->evicted, "");
  ASSERT_TRUE(ask(Requeue{runs}));
  EXPECT_EQ(state_.find(runs)->evicted, "") << "in its next turn it is not asked to";
  EXPECT_THAT(schedule(state_, box_, {}, {}, 200), IsEmpty());
  EXPECT_THAT(state_.find(runs)->why, HasSubstr("gpu:0 is drained: the cloud takes it"));
}

TEST_F(OperationTest, AnIdleJobIsToldAndThenAskedToEnd) {
  const int64_t runs = running(test_job("ada", 1)), waits = submitted(test_job("ada", 2));
  ASSERT_TRUE(ask(RecordIdle{runs, {IdleStep::warned, 100, 10, "it\x1b sleeps"}}));
  EXPECT_EQ(state_.find(runs)->idle, (IdleNotice{IdleStep::warned, 100, 10, "it? sleeps"}));
  EXPECT_EQ(state_.find(runs)->evicted, "");
  ASSERT_TRUE(ask(RecordIdle{runs, {}}));
  EXPECT_EQ(state_.find(runs)->idle, IdleNotice{}) << "it works again";
  ASSERT_TRUE(ask(RecordIdle{runs, {IdleStep::released, 200, 0, "it sleeps"}}));
  EXPECT_EQ(state_.find(runs)->evicted, "it sleeps");
  state_.find(runs)->evicted = "the cloud takes it";
  ASSERT_TRUE(ask(RecordIdle{runs, {IdleStep::released, 200, 0, "it sleeps"}}));
  EXPECT_EQ(state_.find(runs)->evicted, "the cloud takes it") << "what came first is why";
  ASSERT_TRUE(ask(Requeue{runs}));
  EXPECT_EQ(state_.find(runs)->idle, IdleNotice{}) << "in its next turn it begins anew";
  ASSERT_TRUE(ask(RecordIdle{waits, {IdleStep::warned, 200, 0, "too late"}}));
  EXPECT_EQ(state_.find(waits)->idle, IdleNotice{}) << "it does not run";
}

TEST_F(OperationTest, ARunIsHeardOf) {
  const int64_t runs = running(test_job("ada", 1));
  const std::string device = state_.find(runs)->devices.at(0);
  ASSERT_TRUE(ask(RecordRun{runs, {999, 3, 9, 0.5, {{device, 0.5, 0.25}, {"gpu:77", 0.5, 0.25}}}}));
  EXPECT_EQ(state_.find(runs)->run, (RunNotice{100, 3, 9, 0.5, {{device, 0.5, 0.25}}}))
      << "its own devices, by our clock";
  EXPECT_TRUE(state_.find(runs)->run.is_fresh(150));
  EXPECT_FALSE(state_.find(runs)->run.is_fresh(191));
  ASSERT_TRUE(ask(Requeue{runs}));
  EXPECT_EQ(state_.find(runs)->run, RunNotice{});
}

TEST_F(OperationTest, WhatAKeeperSaysOfARunIsBounded) {
  const int64_t runs = running(test_job("eve", 1));
  const std::string device = state_.find(runs)->devices.at(0);
  ASSERT_TRUE(ask(RecordRun{runs, {0, -3, -9, 1e300, {{device, 7, -1e300}}}}));
  EXPECT_EQ(state_.find(runs)->run, (RunNotice{100, 0, 0, 3600, {{device, 1, 0}}}));
  EXPECT_FALSE(state_.find(runs)->run.is_fresh(100 + 86400)) << "a step of any length is not believed";
}

/// Ranks are a job's to start, and each could make the pool's answers longer.
TEST_F(OperationTest, ARunHasOnePartForEachDevice) {
  const int64_t runs = running(test_job("eve", 1));
  const std::string device = state_.find(runs)->devices.at(0);
  RunNotice notice{0, 3, 9, 0.5, {{device, 0.25, 0.5}, {device, 0.5, 0.25}}};
  ASSERT_TRUE(ask(RecordRun{runs, notice}));
  EXPECT_EQ(state_.find(runs)->run, (RunNotice{100, 3, 9, 0.5, {{device, 0.75, 0.25}}}));
  notice.parts.assign(RunNotice::kMostParts, {device, 1, 1});
  ASSERT_TRUE(ask(RecordRun{runs, notice}));
  EXPECT_EQ(state_.find(runs)->run.parts.size(), 1U);
}

TEST_F(OperationTest, ARunWasNotHeardOfInTheFuture) {
  const RunNotice notice{.at_s = 10'000, .step = 1};
  EXPECT_TRUE(notice.is_fresh(9'990)) << "clocks are set by small steps";
  EXPECT_FALSE(notice.is_fresh(5'000)) << "the clock was set back, and it has said nothing since";
}

TEST_F(OperationTest, TextsThatARecordCannotHoldAreCleaned) {
  const auto read = parse_operation(to_json(End{1, {.why = "a\x1b[31m\nb" + std::string(5000, 'x')}}), "request");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(std::get<End>(*read).ending.why, testing::StartsWith("a?[31m?b"));
}

TEST_F(OperationTest, WhatIsNoOperationIsRefused) {
  for (const char* text : {"[]", "{}", R"({"operation": 3})", R"({"operation": "destroy"})", R"({"operation": "end"})",
                           R"({"operation": "submit", "waits": true})", R"({"operation": "cancel", "jobs": ["1"]})",
                           R"({"operation": "submit", "waits": true, "job": {"id": 1}})"}) {
    const auto read = parse_operation(parse_json(text, "text").value(), "request");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().kind, ErrorKind::usage);
    EXPECT_THAT(read.error().message, HasSubstr("request")) << text;
  }
}

TEST_F(OperationTest, SubmitGivesTheLogItsPlace) {
  const auto applied = ask(Submit{.job = test_job("ada", 1), .log_folder = "/pool"});
  ASSERT_TRUE(applied);
  EXPECT_EQ(state_.find(applied->job)->log, "/pool/logs/1.log");
  Job named = test_job("ada", 1);
  named.log = "/home/ada/own.log";
  EXPECT_EQ(state_.find(ask(Submit{.job = named, .log_folder = "/pool"})->job)->log, "/home/ada/own.log");
}

TEST_F(OperationTest, AnArrayStandsForItself) {
  const auto applied = ask(Submit{.job = test_job("ada", 1), .stands_for_array = true});
  ASSERT_TRUE(applied);
  EXPECT_TRUE(is_array(*state_.find(applied->job)));
  ASSERT_TRUE(ask(Explain{applied->job, "1 of 9 indices done"}));
  EXPECT_EQ(state_.find(applied->job)->why, "1 of 9 indices done");
}

TEST_F(OperationTest, AJobThatMayNotWaitIsRefusedOnlyWhereItWouldHaveTo) {
  const Operation now = Submit{.job = test_job("ada", 2), .waits = false};
  const Applied first = ask(now).value();
  schedule(state_, box_, {}, {}, 100);
  EXPECT_TRUE(accept(state_, now, first));
  const Applied second = ask(now).value();
  schedule(state_, box_, {}, {}, 100);
  const auto accepted = accept(state_, now, second);
  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error().kind, ErrorKind::not_now);
  EXPECT_EQ(accepted.error().message, state_.find(second.job)->why);
}

TEST_F(OperationTest, GivingWayIsNoRestart) {
  const int64_t id = running(test_job("ada", 1));
  ASSERT_TRUE(ask(GiveWay{id, "gpu:0 is lost", true}));
  EXPECT_EQ(state_.find(id)->state, JobState::waiting);
  EXPECT_EQ(state_.find(id)->restarts, 0);
  schedule(state_, box_, {}, {}, 100);
  ASSERT_TRUE(ask(Requeue{id}));
  EXPECT_EQ(state_.find(id)->restarts, 1);
  schedule(state_, box_, {}, {}, 100);
  ASSERT_TRUE(ask(GiveWay{id, "gpu:0 is lost", false}));
  EXPECT_EQ(state_.find(id)->state, JobState::ended);
  EXPECT_EQ(state_.find(id)->exit_status, 4);
}

TEST_F(OperationTest, CancelNamesThoseItCannotEnd) {
  const int64_t own = submitted(test_job("ada", 1)), other = submitted(test_job("bob", 1));
  const auto applied = ask(Cancel{{own, own, other, 99}}, 'a');
  ASSERT_TRUE(applied);
  EXPECT_EQ(state_.find(own)->state, JobState::ended);
  EXPECT_EQ(state_.find(other)->state, JobState::waiting);
  EXPECT_THAT(applied->refused, ElementsAre(HasSubstr("belongs to bob"), "there is no job 99"));
  EXPECT_THAT(ask(Cancel{{own}}, 'a')->refused, ElementsAre("job 1 has ended already"));
}

TEST_F(OperationTest, CancelSelectedEndsThoseOfTheNameAndUser) {
  Job sweep = test_job("ada", 1);
  sweep.name = "sweep";
  const int64_t own = submitted(sweep), other = submitted(test_job("ada", 1));
  const int64_t bobs = submitted(test_job("bob", 1));
  EXPECT_THAT(ask(CancelSelected{"sweep", "ada"}, 'a')->cancelled, ElementsAre(own));
  EXPECT_THAT(ask(CancelSelected{"", "ada"}, 'a')->cancelled, ElementsAre(other));
  EXPECT_THAT(ask(CancelSelected{"", "ada"}, 'a')->cancelled, IsEmpty());
  EXPECT_THAT(ask(CancelSelected{"", ""}, 'a').error().message, HasSubstr("belongs to bob"));
  EXPECT_EQ(state_.find(bobs)->state, JobState::waiting);
}

TEST_F(OperationTest, ChangesOfWaitingJobsAreTheirUsersOwn) {
  const int64_t own = submitted(test_job("ada", 1)), other = submitted(test_job("bob", 1));
  ASSERT_TRUE(ask(Pause{{own}}, 'a'));
  EXPECT_TRUE(state_.find(own)->paused);
  ASSERT_TRUE(ask(Resume{{own}}, 'a'));
  EXPECT_FALSE(state_.find(own)->paused);
  ASSERT_TRUE(ask(Reprioritize{{own}, 5}, 'a'));
  EXPECT_EQ(state_.find(own)->priority, 5);
  for (const Operation& operation : {Operation(Pause{{other}}), Operation(Reprioritize{{other}, 5})})
    EXPECT_THAT(ask(operation, 'a').error().message, HasSubstr("belongs to bob"));
}

TEST_F(OperationTest, DrainsNameDevicesOfTheMachine) {
  EXPECT_THAT(ask(DrainDevices{{"gpu:77"}, "broken", "root"}).error().message, HasSubstr("gpu:77"));
  const std::string id = box_.devices.front().id;
  ASSERT_TRUE(ask(DrainDevices{{id}, "broken", "root"}));
  ASSERT_EQ(state_.drains.size(), 1U);
  EXPECT_EQ(state_.drains[0].since_s, 100);
  ASSERT_TRUE(ask(UndrainDevices{{id}}));
  EXPECT_THAT(state_.drains, IsEmpty());
  EXPECT_FALSE(ask(UndrainDevices{{id}}));
}

TEST_F(OperationTest, WhereThePolicyIsWrongNothingEntersAndAllMayEnd) {
  const int64_t id = running(test_job("ada", 1));
  const Result<Policy> wrong = usage_error("policy.toml:3: no");
  const Circumstances at{.inventory = box_, .policy = wrong, .uid = 0, .now_s = 100};
  EXPECT_EQ(apply(state_, Submit{.job = test_job("ada", 1)}, at).error().message, "policy.toml:3: no");
  EXPECT_EQ(apply(state_, Reprioritize{{id}, 1}, at).error().message, "policy.toml:3: no");
  ASSERT_TRUE(apply(state_, End{id, {}}, at));
  EXPECT_EQ(state_.find(id)->state, JobState::ended);
}

TEST_F(OperationTest, WhatFreesDevicesStartsNobody) {
  for (const Operation& operation : one_of_each()) {
    const bool frees = std::holds_alternative<End>(operation) || std::holds_alternative<Requeue>(operation) ||
                       std::holds_alternative<GiveWay>(operation);
    EXPECT_FALSE(frees && starts_jobs(operation));
  }
}

TEST_F(OperationTest, RecordsWhatHoldsAJob) {
  const int64_t id = running(test_job("ada", 1));
  const std::vector<process::ProcessId> processes{process::own_process_id()};
  ASSERT_TRUE(ask(RecordProcesses{id, processes}));
  ASSERT_TRUE(ask(RecordConfinement{id, "/sys/fs/cgroup/x", true, 2}));
  ASSERT_TRUE(ask(RecordDaemons{id, {"gpu:0"}}));
  ASSERT_TRUE(ask(CountRestart{id}));
  const Job& job = *state_.find(id);
  EXPECT_EQ(job.processes, processes);
  EXPECT_EQ(job.cgroup, "/sys/fs/cgroup/x");
  EXPECT_TRUE(job.devices_enforced);
  EXPECT_EQ(job.files_denied, 2);
  EXPECT_THAT(job.daemons, ElementsAre("gpu:0"));
  EXPECT_EQ(job.restarts, 1);
  EXPECT_EQ(check(state_), "");
}

TEST_F(OperationTest, WhatIsNotThereIsLeftAlone) {
  for (const Operation& operation : one_of_each()) {
    if (std::holds_alternative<Submit>(operation)) continue;
    const bool is_refused = std::holds_alternative<Reprioritize>(operation) ||
                            std::holds_alternative<Pause>(operation) || std::holds_alternative<Resume>(operation) ||
                            std::holds_alternative<TakeOver>(operation);
    EXPECT_EQ(ask(operation).has_value(), !is_refused) << to_line(to_json(operation));
    EXPECT_THAT(state_.jobs, IsEmpty());
  }
}

TEST_F(OperationTest, UsageFadesByTheLastPolicyWhileItsFileIsWrong) {
  constexpr double kDay_s = 86400;
  Policy before;
  before.half_life_s = kDay_s;
  const Result<Policy> wrong = usage_error("policy.toml:1: what is this");
  const int64_t id = running(test_job("ada", 1));
  state_.usage = {{"ada", 1000, 100}};
  const Circumstances at{
      .inventory = box_, .policy = wrong, .uid = 0, .now_s = 100 + kDay_s, .user = "root", .last_policy = &before};
  ASSERT_TRUE(apply(state_, End{id, {.ended_s = 101}}, at));
  EXPECT_NEAR(state_.usage.at(0).device_seconds, 500, 1);
}

TEST_F(OperationTest, WhatACancelledJobWithoutAKeeperHeldFadesByThePolicy) {
  constexpr double kDay_s = 86400;
  Policy policy;
  policy.half_life_s = kDay_s;
  Job job = test_job("ada", 1);
  job.outlives_keeper = true;
  const int64_t id = submitted(job);
  lose_keeper(state_, id);
  schedule(state_, box_, {}, {}, 100);
  state_.usage = {{"ada", 1000, 100 - kDay_s}};
  ASSERT_TRUE(cancel(state_, id, {0, "root"}, 100, policy));
  EXPECT_NEAR(state_.usage.at(0).device_seconds, 500, 1);
}

}  // namespace
}  // namespace remuda::pool
