// What becomes of jobs that wait: for a time, for others, until they are resumed.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/clock.h"
#include "pool/admission.h"
#include "pool/testing/schedule.h"

namespace remuda::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WaitingJobs : public ScheduleTest {};

TEST_F(WaitingJobs, WaitsForTheEndsOfOthersHoweverTheyEnd) {
  add("ada", 1);
  Job later = test_job("ada", 1);
  later.after_any = {1};
  add(later);
  EXPECT_THAT(look(), ElementsAre(1));
  EXPECT_EQ(job(2).why, "job 1, which must end before, is running");
  finish(1, 200, 3);
  EXPECT_THAT(look(200), ElementsAre(2));
}

TEST_F(WaitingJobs, StartsNothingBeforeItsTimeToBegin) {
  Job later = test_job("ada", 4);
  later.begin_s = 5000;
  add(later);
  add("bob", 1);
  EXPECT_THAT(look(), ElementsAre(2)) << "it keeps nobody waiting";
  EXPECT_THAT(job(1).why, testing::StartsWith("it begins at 1970-01-01 "));
  EXPECT_EQ(begins_next(state, 100), 5000);
  EXPECT_THAT(look(4999), IsEmpty());
  add("eve", 1, 5000);
  finish(2, 5000);
  EXPECT_THAT(look(5000), ElementsAre(1)) << "with the place of its arrival";
  EXPECT_EQ(begins_next(state, 5000), kNever_s);
}

TEST_F(WaitingJobs, CountsPatienceFromTheTimeToBegin) {
  add("ada", 2);
  Job later = test_job("bob", 4);
  later.begin_s = 5000;
  add(later);
  look();
  add("eve", 1, 5100);
  EXPECT_THAT(look(5100), ElementsAre(3)) << "bob has not waited for long";
  finish(3, 6000);
  add("eve", 1, 6000);
  EXPECT_THAT(look(6000), IsEmpty());
}

TEST_F(WaitingJobs, PassesOverAPausedJobWhichKeepsItsPlace) {
  add("ada", 4);
  add("bob", 4);
  ASSERT_TRUE(pause(state, 1, 0));
  EXPECT_THAT(look(), ElementsAre(2));
  EXPECT_EQ(job(1).why, "it is paused, until `remuda resume 1`");
  add("eve", 4, 200);
  finish(2, 5000);
  ASSERT_TRUE(resume(state, 1, 0));
  EXPECT_THAT(look(5000), ElementsAre(1)) << "ahead of eve, who came later";
}

TEST_F(WaitingJobs, RemembersWhichDevicesAJobHad) {
  add("ada", 2);
  look();
  EXPECT_THAT(job(1).devices, ElementsAre("gpu:0", "gpu:1"));
  state.find(1)->begun = true;
  requeue(state, 1, policy, 150);
  EXPECT_FALSE(job(1).begun);
  EXPECT_THAT(job(1).devices, IsEmpty());
  ASSERT_EQ(job(1).earlier.size(), 1U);
  EXPECT_EQ(job(1).earlier[0], (Turn{100, 150, {"gpu:0", "gpu:1"}}));
  look(200);
  requeue(state, 1, policy, 201);
  EXPECT_EQ(job(1).earlier.size(), 1U) << "nothing had started";
  look(300);
  finish(1, 400);
  EXPECT_THAT(job(1).devices, ElementsAre("gpu:0", "gpu:1"));
}

TEST_F(WaitingJobs, SelectsByNameAndUserWhatHasNotEnded) {
  for (const char* user : {"ada", "ada", "bob", "ada"}) {
    Job named = test_job(user, 1);
    named.name = "sweep";
    add(named);
  }
  add("ada", 1);
  end(state, 4, {}, policy, 200);
  EXPECT_THAT(select_jobs(state, {.name = "sweep", .user = "ada"}), ElementsAre(1, 2));
  EXPECT_THAT(select_jobs(state, {.name = "", .user = "ada"}), ElementsAre(1, 2, 5));
  EXPECT_THAT(select_jobs(state, {.name = "sweep", .user = ""}), ElementsAre(1, 2, 3));
  state.find(1)->array = 1;
  state.find(2)->array = 1;
  EXPECT_THAT(select_jobs(state, {.name = "sweep", .user = "ada"}), ElementsAre(1)) << "the array stands for its jobs";
}

TEST_F(WaitingJobs, ReprioritizeMovesAJobInTheQueue) {
  add("ada", 4);
  add("ada", 4);
  EXPECT_FALSE(reprioritize(state, 2, 5, 'b')) << "of another user";
  ASSERT_TRUE(reprioritize(state, 2, 5, 'a'));
  EXPECT_THAT(look(), ElementsAre(2));
  EXPECT_FALSE(reprioritize(state, 9, 5, 0));
}

TEST_F(WaitingJobs, PauseRefuses) {
  add("ada", 1);
  add("ada", 4);
  look();
  const auto why = [](const Result<void>& result) { return result ? "" : result.error().message; };
  EXPECT_EQ(why(pause(state, 1, 'a')), "job 1 runs, and only one that waits can be paused; `remuda cancel 1` ends it");
  EXPECT_EQ(why(resume(state, 2, 'a')), "job 2 is not paused");
  EXPECT_EQ(why(pause(state, 2, 'b')), "job 2 belongs to ada");
  EXPECT_EQ(why(pause(state, 2, 'a')), "");
  EXPECT_EQ(why(pause(state, 2, 'a')), "job 2 is already paused");
  EXPECT_EQ(why(pause(state, 3, 'a')), "there is no job 3");
}

TEST_F(WaitingJobs, JobsOfAnArrayFollowIt) {
  add("ada", 1);
  state.find(1)->array = 1;
  const auto add_index = [&] {
    Job index = test_job("ada", 1);
    index.array = 1;
    return add(index);
  };
  add_index();
  look();
  add_index();
  ASSERT_TRUE(pause(state, 1, 'a'));
  ASSERT_TRUE(reprioritize(state, 1, 7, 'a'));
  EXPECT_FALSE(job(2).paused) << "it runs";
  EXPECT_TRUE(job(3).paused);
  EXPECT_EQ(job(3).priority, 7);
  const int64_t later = add_index();
  EXPECT_TRUE(job(later).paused);
  EXPECT_EQ(job(later).priority, 7);
  EXPECT_THAT(look(), IsEmpty());
  ASSERT_TRUE(resume(state, 1, 'a'));
  EXPECT_THAT(look(), ElementsAre(3, later));
}

TEST_F(WaitingJobs, AJobThatOutlivesItsKeeperGetsAnotherOnceItIsGrantedItsDevices) {
  Job asked = test_job("ada", 1);
  asked.outlives_keeper = asked.unkept = true;
  const int64_t id = add(asked), other = add("bob", 1);
  EXPECT_FALSE(job(id).unkept) << "who submits it keeps it";
  const process::ProcessId keeper = job(id).keeper;
  EXPECT_EQ(take_over(state, id, job(id).uid, keeper).error().message,
            fmt::format("job {} has a process that keeps it", id));
  lose_keeper(state, id);
  lose_keeper(state, other);
  EXPECT_FALSE(job(other).unkept) << "it does not outlive its keeper";
  EXPECT_FALSE(needs_keeper(job(id))) << "it waits as a record";
  EXPECT_THAT(look(), ElementsAre(id, other));
  EXPECT_TRUE(needs_keeper(job(id)));
  EXPECT_EQ(take_over(state, id, job(id).uid + 1, keeper).error().message, fmt::format("job {} belongs to ada", id));
  EXPECT_EQ(take_over(state, id, 0, keeper).error().message, fmt::format("job {} belongs to ada", id))
      << "root keeps no job of a user";
  EXPECT_FALSE(take_over(state, id, job(id).uid, {})) << "no process";
  process::ProcessId next = keeper;
  next.pid += 1;
  ASSERT_TRUE(take_over(state, id, job(id).uid, next));
  EXPECT_EQ(job(id).keeper, next);
  EXPECT_EQ(job(id).state, JobState::running);
  EXPECT_FALSE(needs_keeper(job(id)));
  lose_keeper(state, id);
  EXPECT_FALSE(job(id).unkept) << "it runs";
}

TEST_F(WaitingJobs, NothingIsHeldForAJobWhoseKeeperCannotBeStarted) {
  Job asked = test_job("ada", 1);
  asked.outlives_keeper = true;
  const int64_t id = add(asked);
  fail_keeper(state, id, {}, 100);
  EXPECT_FALSE(job(id).keeper_failed) << "it has one";
  lose_keeper(state, id);
  EXPECT_THAT(look(), ElementsAre(id));
  fail_keeper(state, id, {}, 100);
  EXPECT_EQ(job(id).state, JobState::waiting);
  EXPECT_THAT(state.leases, IsEmpty());
  EXPECT_EQ(job(id).restarts, 0) << "nothing of it has run";
  EXPECT_TRUE(needs_keeper(job(id))) << "that is tried again";
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_EQ(job(id).why, kUnkept);
  process::ProcessId next = job(id).keeper;
  next.pid += 1;
  ASSERT_TRUE(take_over(state, id, job(id).uid, next));
  EXPECT_THAT(look(), ElementsAre(id));
}

TEST_F(WaitingJobs, OneThatWasGrantedDevicesAndHasNoKeeperYetIsCancelledAsIfItWaited) {
  Job asked = test_job("ada", 1);
  asked.outlives_keeper = true;
  const int64_t id = add(asked);
  lose_keeper(state, id);
  EXPECT_THAT(look(), ElementsAre(id));
  ASSERT_TRUE(cancel(state, id, {0, "root"}, 100));
  EXPECT_EQ(job(id).state, JobState::ended);
  EXPECT_EQ(job(id).why, "was cancelled by root while it waited");
  EXPECT_TRUE(job(id).cancelled);
  EXPECT_THAT(state.leases, IsEmpty());
}

TEST_F(WaitingJobs, OneWhoseEndIsToBeToldGetsAKeeperForThatWhereAJobBeforeItFailed) {
  const int64_t first = add("ada", 1);
  Job asked = test_job("ada", 1);
  asked.outlives_keeper = true;
  asked.at_end = "echo over";
  asked.after = {first};
  const int64_t id = add(asked);
  lose_keeper(state, id);
  look();
  end(state, first, {.exit_status = 1}, {}, 100);
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_EQ(job(id).state, JobState::waiting);
  EXPECT_TRUE(needs_keeper(job(id)));
  EXPECT_EQ(job(id).why, fmt::format("job {}, which had to end well before, did not", first));
}

TEST_F(WaitingJobs, ACancelledJobWithoutAKeeperGetsOneWhereItsEndIsToBeTold) {
  Job asked = test_job("ada", 1);
  asked.outlives_keeper = true;
  const int64_t silent = add(asked);
  asked.at_end = "echo over";
  const int64_t told = add(asked);
  for (const int64_t id : {silent, told}) lose_keeper(state, id);
  for (const int64_t id : {silent, told}) ASSERT_TRUE(cancel(state, id, {0, "root"}, 100));
  EXPECT_EQ(job(silent).state, JobState::ended);
  EXPECT_EQ(job(told).state, JobState::waiting);
  process::ProcessId next = job(told).keeper;
  next.pid += 1;
  ASSERT_TRUE(take_over(state, told, job(told).uid, next));
  EXPECT_THAT(look(), IsEmpty()) << "it does not start any more";
  EXPECT_EQ(job(told).why, "was cancelled by root while it waited");
  ASSERT_TRUE(cancel(state, told, {0, "root"}, 100));
  EXPECT_EQ(job(told).state, JobState::ended);
}

}  // namespace
}  // namespace remuda::pool
