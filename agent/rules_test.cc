#include "agent/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::agent {
namespace {

using testing::HasSubstr;

process::ProcessId process_of(int pid) { return {pid, 100, "boot", 1}; }

Caller user(int uid) { return {uid, uid == 0, process_of(uid + 1)}; }

constexpr int kAda = 1000, kBob = 1001;

class RulesTest : public testing::Test {
 protected:
  RulesTest() {
    state_.next_job = 3;
    state_.jobs = {
        {.id = 1, .user = "ada", .uid = kAda, .state = pool::JobState::running, .keeper = user(kAda).process},
        {.id = 2, .user = "ada", .uid = kAda, .array = 2, .keeper = user(kAda).process}};
    state_.leases = {{1, "gpu:0", 1, 0, 0}};
  }
  std::string refusal(pool::Operation operation, const Caller& caller) const {
    const auto admitted = admit(operation, caller, {"name", {}}, "id-1", state_);
    return admitted ? "" : admitted.error().message;
  }

  pool::PoolState state_;
};

TEST_F(RulesTest, WhatASubmissionSaysOfItsUserAndStateIsReplaced) {
  pool::Operation operation = pool::Submit{.job = {.id = 77,
                                                   .user = "root",
                                                   .uid = 0,
                                                   .name = "mine",
                                                   .preempted_by = 3,
                                                   .started_s = 5,
                                                   .state = pool::JobState::running,
                                                   .keeper = process_of(1),
                                                   .processes = {process_of(1)},
                                                   .command = {"true"},
                                                   .daemons = {"gpu:0"},
                                                   .cgroup = "/sys/fs/cgroup",
                                                   .devices_enforced = true,
                                                   .restarts = 4,
                                                   .cancelled = true,
                                                   .submission = "another"}};
  ASSERT_TRUE(admit(operation, user(kBob), {"bob", {"gpu"}}, "id-1", state_));
  const pool::Job& job = std::get<pool::Submit>(operation).job;
  const pool::Job expected{.user = "bob",
                           .uid = kBob,
                           .groups = {"gpu"},
                           .name = "mine",
                           .keeper = user(kBob).process,
                           .command = {"true"},
                           .submission = "id-1"};
  EXPECT_EQ(to_json(job), to_json(expected));
}

TEST_F(RulesTest, APriorityIsWithinBounds) {
  const auto with = [](int priority) { return pool::Submit{.job = {.priority = priority}}; };
  EXPECT_EQ(refusal(with(-1000), user(kAda)), "");
  EXPECT_EQ(refusal(with(1000), user(0)), "");
  EXPECT_EQ(refusal(with(1001), user(0)), "a priority is between -1000 and 1000");
  EXPECT_EQ(refusal(pool::Reprioritize{{1}, -1001}, user(kAda)), "a priority is between -1000 and 1000");
}

/// It counts into what a policy permits, and into when devices come free.
TEST_F(RulesTest, AGraceTimeIsNoLongerThanIsGranted) {
  pool::Operation asked = pool::Submit{.job = {.grace_s = 1e9}};
  ASSERT_TRUE(admit(asked, user(kAda), {"ada", {}}, "id-1", state_));
  EXPECT_EQ(std::get<pool::Submit>(asked).job.grace_s, 600);
}

TEST_F(RulesTest, AJobIsNoLargerThanAnAnswerHolds) {
  pool::Job job{.command = std::vector<std::string>(60, std::string(4000, 'x'))};
  EXPECT_THAT(refusal(pool::Submit{.job = job}, user(kAda)), HasSubstr("KiB to describe, and 96 KiB are the most"));
}

TEST_F(RulesTest, TheWaitingJobsOfAUserWaitForABoundedNumberOfOthers) {
  for (int64_t id = 3; id < 3 + 39; ++id)
    state_.jobs.push_back({.id = id, .user = "ada", .uid = kAda, .after = std::vector<int64_t>(256, 1)});
  const pool::Job one{.after_any = std::vector<int64_t>(16, 1)}, two{.after_any = std::vector<int64_t>(17, 1)};
  EXPECT_EQ(refusal(pool::Submit{.job = one}, user(kAda)), "");
  EXPECT_EQ(refusal(pool::Submit{.job = two}, user(kAda)),
            "your waiting jobs wait for 10000 others together, and no user's may for more");
  EXPECT_EQ(refusal(pool::Submit{.job = two}, user(kBob)), "");
}

TEST_F(RulesTest, WhoTakesOverAJobIsWhoAsks) {
  pool::Operation asked = pool::TakeOver{7, {.pid = 99}};
  ASSERT_TRUE(admit(asked, user(kAda), {"ada", {}}, "id-1", state_));
  EXPECT_EQ(std::get<pool::TakeOver>(asked).keeper, user(kAda).process);
}

TEST_F(RulesTest, OnlyAnAdministratorDrainsAndInHisOwnName) {
  const pool::Operation drain = pool::DrainDevices{{"gpu:0"}, "the fan is broken", "nobody"};
  for (const pool::Operation& asked : {drain, pool::Operation(pool::UndrainDevices{{"gpu:0"}}),
                                       pool::Operation(pool::LeaveHost{"it burns", "nobody"})}) {
    EXPECT_EQ(refusal(asked, user(kAda)),
              "an agent serves this pool, so only root may drain devices, and grant them again");
    EXPECT_EQ(refusal(asked, user(0)), "");
  }
  pool::Operation admitted = drain;
  ASSERT_TRUE(admit(admitted, user(0), {"root", {}}, "id-1", state_));
  EXPECT_EQ(std::get<pool::DrainDevices>(admitted).by, "root");
}

TEST_F(RulesTest, OnlyTheAgentSaysThatAJobIsIdle) {
  for (const int uid : {0, kAda})
    EXPECT_EQ(refusal(pool::RecordIdle{1, {}}, user(uid)), "only the agent tells jobs that their devices are idle");
}

TEST_F(RulesTest, WhatAUserDecidesOfTheirJobIsKept) {
  pool::Operation asked =
      pool::Submit{.job = {.begin_s = 500, .after = {1}, .after_any = {2}, .at_end = "mail", .mail = "ada@x.org"}};
  ASSERT_TRUE(admit(asked, user(kAda), {"ada", {}}, "id-1", state_));
  const pool::Job& job = std::get<pool::Submit>(asked).job;
  EXPECT_EQ(job.begin_s, 500);
  EXPECT_THAT(job.after, testing::ElementsAre(1));
  EXPECT_THAT(job.after_any, testing::ElementsAre(2));
  EXPECT_EQ(job.at_end, "mail");
  EXPECT_EQ(job.mail, "ada@x.org");
}

TEST_F(RulesTest, AnIndexGoesOnlyIntoAnArrayOfItsUser) {
  const auto into = [](int64_t array) { return pool::Submit{.job = {.array = array}}; };
  EXPECT_EQ(refusal(into(2), user(kAda)), "");
  EXPECT_EQ(refusal(into(2), user(kBob)), "job 2 is no array of yours");
  EXPECT_EQ(refusal(into(1), user(kAda)), "job 1 is no array of yours");
  EXPECT_EQ(refusal(into(9), user(kAda)), "job 9 is no array of yours");
}

TEST_F(RulesTest, OnlyItsKeeperSpeaksForAJob) {
  const std::vector<pool::Operation> words{pool::End{.job = 1}, pool::Requeue{1}, pool::GiveWay{.job = 1},
                                           pool::CountRestart{1}, pool::RecordDaemons{1, {"gpu:0"}}};
  Caller other_process = user(kAda);
  other_process.process = process_of(4711);
  Caller same_number = user(kAda);
  same_number.process.start_ticks = 101;
  Caller forger = user(kBob);
  forger.process = user(kAda).process;
  for (const pool::Operation& word : words) {
    EXPECT_EQ(refusal(word, user(kAda)), "");
    for (const Caller& caller : {user(kBob), other_process, same_number, forger, user(0)})
      EXPECT_EQ(refusal(word, caller), "job 1 is kept by another process");
  }
  EXPECT_EQ(refusal(pool::End{.job = 9}, user(kAda)), "job 9 is kept by another process");
}

TEST_F(RulesTest, AKeeperSaysNothingThatIsNotSo) {
  EXPECT_EQ(refusal(pool::RecordDaemons{1, {"gpu:1"}}, user(kAda)), "job 1 does not hold gpu:1");
  pool::Operation daemons = pool::RecordDaemons{1, {"gpu:0"}, "/home/eve/mps"};
  ASSERT_TRUE(admit(daemons, user(kAda), {"ada", {}}, "r", state_));
  EXPECT_EQ(std::get<pool::RecordDaemons>(daemons).folder, "") << "where daemons are, the agent knows";
  EXPECT_EQ(refusal(pool::Explain{1, "text"}, user(kAda)), "job 1 is no array");
  EXPECT_EQ(refusal(pool::Explain{2, "text"}, user(kAda)), "");
}

TEST_F(RulesTest, WhatEachChangeLooksAtIsBounded) {
  const std::vector<int64_t> many(kMostNamed + 1, 1), most(kMostNamed, 1);
  for (const pool::Operation& operation :
       {pool::Operation(pool::Cancel{many}), pool::Operation(pool::Pause{many}), pool::Operation(pool::Resume{many}),
        pool::Operation(pool::Reprioritize{many, 0})})
    EXPECT_EQ(refusal(operation, user(kAda)), "1000 jobs at the most are named at once");
  EXPECT_EQ(refusal(pool::Cancel{most}, user(kAda)), "");
  const std::vector<int64_t> half(kMostAwaited / 2, 1), more(kMostAwaited / 2 + 1, 1);
  EXPECT_EQ(refusal(pool::Submit{.job = {.after = half, .after_any = half}}, user(kAda)), "");
  EXPECT_EQ(refusal(pool::Submit{.job = {.after = half, .after_any = more}}, user(kAda)),
            "a job waits for 256 others at the most");
  pool::Job small;
  small.request.share = 0.009;
  EXPECT_EQ(refusal(pool::Submit{.job = small}, user(kAda)), "a part of a device is at least 0.01");
  small.request.share = 0.01;
  EXPECT_EQ(refusal(pool::Submit{.job = small}, user(kAda)), "");
}

TEST_F(RulesTest, NobodyFillsTheMemory) {
  const std::vector<std::string> long_command(16, std::string(4000, 'x'));
  for (int i = 0; i < 530; ++i) state_.jobs.push_back({.id = state_.next_job++, .uid = kBob, .command = long_command});
  const pool::Submit one{.job = {.command = {"true"}}};
  EXPECT_EQ(refusal(one, user(kBob)), "your waiting jobs take 32 MiB, and those of a user may not take more");
  EXPECT_EQ(refusal(one, user(kAda)), "");
}

TEST_F(RulesTest, NobodyFillsTheQueue) {
  for (int i = 0; i < kMostWaitingOfUser; ++i)
    state_.jobs.push_back({.id = state_.next_job++, .uid = kBob, .state = pool::JobState::waiting});
  EXPECT_EQ(refusal(pool::Submit{}, user(kBob)), "10000 of your jobs wait, and no user may have more");
  EXPECT_EQ(refusal(pool::Submit{}, user(kAda)), "");
  while (static_cast<int>(state_.jobs.size()) < kMostWaiting + 2)
    state_.jobs.push_back({.id = state_.next_job, .uid = static_cast<int>(2000 + state_.next_job++ % 100)});
  EXPECT_EQ(refusal(pool::Submit{}, user(kAda)), "50000 jobs wait, and no more are taken");
}

TEST_F(RulesTest, OthersSeeWhoAndHowLongButNotWhat) {
  pool::Job job{.id = 5,
                .user = "ada",
                .uid = kAda,
                .name = "name",
                .submitted_s = 7,
                .state = pool::JobState::running,
                .keeper = process_of(9),
                .processes = {process_of(10)},
                .command = {"python", "--token=secret"},
                .folder = "/home/ada/secret",
                .log = "/home/ada/log",
                .at_end = "mail ada",
                .mail = "ada@x.org",
                .cgroup = "/x",
                .submission = "id",
                .why = "why"};
  for (const int uid : {0, kAda}) {
    const pool::Job seen = visible_to(user(uid), job);
    EXPECT_EQ(seen.command, job.command);
    EXPECT_EQ(seen.log, job.log);
    EXPECT_EQ(seen.submission, "") << "whoever knows it could claim the answer";
  }
  const pool::Job seen = visible_to(user(kBob), job);
  EXPECT_EQ(to_json(seen), to_json(pool::Job{.id = 5,
                                             .user = "ada",
                                             .uid = kAda,
                                             .name = "name",
                                             .submitted_s = 7,
                                             .state = pool::JobState::running,
                                             .why = "why"}));
  pool::Job over = job;
  over.state = pool::JobState::ended;
  over.why = "there is no program /home/ada/secret";
  EXPECT_EQ(visible_to(user(kBob), over).why, "");
  EXPECT_EQ(visible_to(user(kAda), over).why, over.why);
  job.array = 5;
  job.command = {"--array", "0-9", "secret"};
  EXPECT_THAT(visible_to(user(kBob), job).command, testing::ElementsAre("--array", "0-9"));
}

}  // namespace
}  // namespace remuda::agent
