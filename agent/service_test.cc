#include "agent/service.h"

#include <algorithm>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <unistd.h>

#include "agent/testing/service_fixture.h"
#include "process/stat.h"
#include "process/tree.h"
#include "wire/frame.h"

namespace remuda::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST_F(ServiceTest, AKeeperIsAnsweredOnceItsWordIsRecorded) {
  process::ChildProcess child = process::family();
  const Caller keeper = caller_for(child);
  const int64_t job = submit(keeper);
  ASSERT_EQ(find(job)->state, pool::JobState::running);
  const pool::End word{.job = job, .ending = {.exit_status = 7}};
  EXPECT_FALSE(apply(keeper, word, "word")) << "its children still run";
  EXPECT_TRUE(ends(job));
  const auto answer = apply(keeper, word, "word");
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->error);
  EXPECT_EQ(find(job)->exit_status, 7);
  const auto again = apply(keeper, word, "sent again, as the answer was lost");
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->error) << again->error->message;
}

TEST_F(ServiceTest, AWordThatAnAgentTookWithItIsTakenByTheNext) {
  process::ChildProcess child = process::family();
  const Caller keeper = caller_for(child);
  const int64_t job = submit(keeper);
  const pool::End word{.job = job, .ending = {.exit_status = 7}};
  (void)apply(keeper, word, "word");
  open();
  (void)apply(keeper, word, "word");
  EXPECT_TRUE(ends(job));
  EXPECT_EQ(find(job)->exit_status, 7);
}

TEST_F(ServiceTest, TheEndOfAJobIsNobodyElsesToRepeat) {
  process::ChildProcess child = process::family(), other = process::family();
  const Caller keeper = caller_for(child), of_another = caller_for(child, 1001);
  const int64_t job = submit(keeper);
  (void)apply(keeper, pool::End{.job = job}, "word");
  EXPECT_TRUE(ends(job));
  for (const Caller& caller : {caller_for(other), of_another})
    EXPECT_THAT(apply(caller, pool::End{.job = job})->error.value_or(Error{}).message,
                HasSubstr("kept by another process"));
}

TEST_F(ServiceTest, ARequestThatIsSentAgainIsKnownByItsUserAndItsId) {
  process::ChildProcess child = process::family(), other = process::family();
  const auto job_of = [&](const Caller& caller) {
    const auto answer = apply(caller, pool::Submit{.job = job_named("one")}, "same");
    return answer && !answer->error ? wire::parse_applied(answer->result)->job : 0;
  };
  EXPECT_EQ(job_of(caller_for(child)), 1);
  EXPECT_EQ(job_of(caller_for(child)), 1);
  EXPECT_EQ(job_of(caller_for(other, 1001)), 2) << "it is another user's request";
  open();
  EXPECT_EQ(job_of(caller_for(child)), 1) << "the agent before this one had taken it";
}

TEST_F(ServiceTest, ThatAJobHasBegunIsForItsKeeperToSay) {
  process::ChildProcess child = process::family(), other = process::family();
  const int64_t job = submit(caller_for(child));
  for (const Caller& caller : {caller_for(other), caller_for(other, 1001)}) {
    (void)apply(caller, pool::RecordProcesses{job, {}});
    EXPECT_FALSE(find(job)->begun);
  }
  (void)apply(caller_for(child), pool::RecordProcesses{job, {}});
  EXPECT_TRUE(find(job)->begun);
}

TEST_F(ServiceTest, WhoAsksAboutJobsIsNotToldWhatOthersCallTheirs) {
  process::ChildProcess child = process::family();
  const int64_t job = submit(caller_for(child), job_named("secret"));
  const auto name_for = [&](int uid) {
    const auto answer = ask({uid, false, process::own_process_id()}, {.ask = wire::Ask::around});
    return wire::parse_page(answer->result)->state.find(job)->name;
  };
  EXPECT_EQ(name_for(1001), "");
  EXPECT_EQ(name_for(1000), "secret");
}

TEST_F(ServiceTest, AKeeperWaitsForItsAnswerOnlyAMoment) {
  process::ChildProcess child = process::family();
  const Caller keeper = caller_for(child);
  const int64_t job = submit(keeper);
  EXPECT_FALSE(apply(keeper, pool::End{.job = job}, "word"));
  now_s_ += 3;
  EXPECT_TRUE(apply(keeper, pool::End{.job = job}, "word"));
}

TEST_F(ServiceTest, AProcessOfAJobKeepsNoOther) {
  process::ChildProcess child = process::family(), waits = process::family();
  const int64_t first = submit(caller_for(child));
  if (job_cgroups(pool_).empty()) GTEST_SKIP() << "may not make cgroups here";
  Caller inner = caller_for(child);
  inner.process = process::all_descendants(child.pid()).at(0);
  for (const Caller& caller : {caller_for(child), inner}) {
    const auto refused = apply(caller, pool::Submit{.job = job_named("second")});
    ASSERT_TRUE(refused && refused->error);
    EXPECT_EQ(refused->error->message,
              "the process that asks is one of job 1, and stays in it: start jobs from outside of it");
  }
  EXPECT_EQ(first, 1);
}

TEST_F(ServiceTest, WhatAKeeperSaysOfItsCgroupChangesNothing) {
  process::ChildProcess child = process::family();
  const int64_t job = submit(caller_for(child));
  const std::string cgroup = find(job)->cgroup;
  const pool::RecordConfinement said{
      .job = job, .cgroup = "/sys/fs/cgroup/of-another", .devices_enforced = true, .files_denied = 7};
  EXPECT_FALSE(apply(caller_for(child), said)->error);
  EXPECT_EQ(find(job)->cgroup, cgroup);
  EXPECT_EQ(find(job)->files_denied, 0);
}

TEST_F(ServiceTest, NothingStartsWhileTheMachineCannotBeRead) {
  process::ChildProcess child = process::family();
  service_->reading_has_begun();
  service_->take_reading(failed("the driver hangs"), now_s_);
  const int64_t job = submit(caller_for(child));
  EXPECT_EQ(find(job)->state, pool::JobState::waiting);
  read_machine();
  EXPECT_EQ(find(job)->state, pool::JobState::running);
}

TEST_F(ServiceTest, OwnJobsAreThoseOfTheCallerAlone) {
  process::ChildProcess child = process::family(), other = process::family();
  submit(caller_for(child));
  const int64_t own = submit(caller_for(other, 1001));
  const auto page = wire::parse_page(ask(caller_for(other, 1001), {.ask = wire::Ask::own})->result);
  ASSERT_TRUE(page);
  ASSERT_THAT(page->state.jobs, SizeIs(1));
  EXPECT_EQ(page->state.jobs[0].id, own);
}

TEST_F(ServiceTest, AUserEntersOnlyOwnJobsAndIsCountedToThem) {
  process::ChildProcess child = process::family(), enters = process::family(), other = process::family();
  const auto children = process::all_descendants(enters.pid());  // which do not enter with it
  const int64_t job = submit(caller_for(child)), second = submit(caller_for(other));
  const auto refusal = [&](const Caller& caller, int64_t id) {
    const auto answer = ask(caller, {.ask = wire::Ask::enter, .job = id});
    return answer && answer->error ? answer->error->message : "";
  };
  EXPECT_EQ(refusal(caller_for(enters, 1001), job), "job 1 belongs to ada");
  EXPECT_EQ(refusal({0, true, process::own_process_id()}, job),
            "job 1 belongs to ada, whose commands alone join it, and not root's: sudo -u ada remuda exec 1 -- COMMAND");
  EXPECT_EQ(refusal(caller_for(enters), 77), "no job 77 is there, or it has ended");
  if (job_cgroups(pool_).empty()) {
    EXPECT_THAT(refusal(caller_for(enters), job), HasSubstr("is not held by a cgroup"));
    GTEST_SKIP() << "may not make cgroups here";
  }
  EXPECT_EQ(refusal(caller_for(enters), job), "");
  (void)apply(caller_for(child), pool::End{.job = job}, "word");
  EXPECT_TRUE(ends(job));
  EXPECT_EQ(process::await_exit(enters).signal, SIGKILL) << "what has entered the job ends with it";
  for (const process::ProcessId& one : children) process::send_signal(one, SIGKILL);
  EXPECT_THAT(refusal(caller_for(other), second), IsEmpty()) << "it is one of it already";
}

TEST_F(ServiceTest, AProcessOfAJobEntersNoOther) {
  process::ChildProcess child = process::family(), other = process::family();
  submit(caller_for(child));
  const int64_t second = submit(caller_for(other));
  if (job_cgroups(pool_).empty()) GTEST_SKIP() << "may not make cgroups here";
  const auto answer = ask(caller_for(child), {.ask = wire::Ask::enter, .job = second});
  ASSERT_TRUE(answer && answer->error);
  EXPECT_THAT(answer->error->message, HasSubstr("is one of job 1, and stays in it"));
}

TEST_F(ServiceTest, OfTwoJobsOfOneKeeperThatWaitedOneStarts) {
  process::ChildProcess holder = process::family(), child = process::family();
  pool::Job all = job_named("all");
  all.request.count = 2;
  const int64_t held = submit(caller_for(holder), all);
  const int64_t one = submit(caller_for(child)), two = submit(caller_for(child));
  if (job_cgroups(pool_).empty()) GTEST_SKIP() << "may not make cgroups here";
  (void)apply(caller_for(holder), pool::End{.job = held}, "word");
  EXPECT_TRUE(ends(held));
  read_machine();
  EXPECT_EQ(find(one)->state, pool::JobState::running);
  EXPECT_EQ(find(two)->state, pool::JobState::ended);
  EXPECT_THAT(find(two)->why, HasSubstr("is one of job 2"));
}

TEST_F(ServiceTest, AReadingThatIsUnderWayAnswersThoseWhoCameMeanwhile) {
  process::ChildProcess child = process::family();
  now_s_ += 100;
  pool::Submit now{.job = job_named("now"), .waits = false};
  EXPECT_FALSE(apply(caller_for(child), now, "now"));
  service_->reading_has_begun();
  EXPECT_FALSE(apply(caller_for(child), now, "now"));
  service_->take_reading(view(), now_s_);
  EXPECT_TRUE(apply(caller_for(child), now, "now"));
}

/// Jobs that run on small parts of a device, and as many that wait, with all that their users can make long.
TEST_F(ServiceTest, NobodyMakesAnAnswerTooLargeForOthers) {
  process::ProcessId gone = process::own_process_id();
  gone.start_ticks -= 1;
  const std::string condition = "memory > 1 && productName != '" + std::string(3900, 'x') + "'";
  service_.reset();
  {
    auto pool = pool::Pool::open(pool_);
    ASSERT_TRUE(pool);
    ASSERT_TRUE(pool->change([&](pool::PoolState& state) -> Result<void> {
      for (int i = 0; i < 600; ++i) {
        pool::Job job = job_named(std::string(4000, 'n'));
        job.id = state.next_job++;
        job.uid = 1000;
        job.user = "ada";
        job.keeper = gone;
        job.paused = i % 2 != 0;
        job.request.share = 0.002;
        job.request.where = *place::Where::parse(condition);
        job.at_end = std::string(4000, 'e');
        job.state = i % 2 == 0 ? pool::JobState::running : pool::JobState::waiting;
        if (i % 2 == 0) state.leases.push_back({job.id, "gpu:0", 0.002, 10, 0});
        state.jobs.push_back(std::move(job));
      }
      return {};
    }));
  }
  open();
  const Caller other{1001, false, process::own_process_id()};
  for (int64_t after = 0;;) {
    const auto answer = ask(other, {.ask = wire::Ask::read, .job = after});
    ASSERT_TRUE(answer && !answer->error);
    EXPECT_LT(text_of(*answer).size(), wire::kLargestAnswer);
    const auto page = wire::parse_page(answer->result);
    ASSERT_TRUE(page && !page->state.jobs.empty());
    after = page->state.jobs.back().id;
    if (!page->has_more) break;
  }
  const auto around = ask(other, {.ask = wire::Ask::around, .job = 2});
  ASSERT_TRUE(around && !around->error);
  EXPECT_LT(text_of(*around).size(), wire::kLargestAnswer);
  const auto page = wire::parse_page(around->result);
  ASSERT_TRUE(page);
  EXPECT_THAT(page->state.leases, SizeIs(300));
  EXPECT_EQ(page->state.find(1)->name, "") << "another user's";
  EXPECT_EQ(page->state.find(2)->name, std::string(4000, 'n')) << "the job that was asked for is whole";
  const auto own = ask({1000, false, process::own_process_id()}, {.ask = wire::Ask::around});
  ASSERT_TRUE(own && !own->error);
  EXPECT_LT(text_of(*own).size(), wire::kLargestAnswer);
}

/// As the pool of an older agent may have them: it kept a part of each rank.
TEST_F(ServiceTest, NoticesOfManyPartsMakeNoAnswerTooLarge) {
  process::ProcessId gone = process::own_process_id();
  gone.start_ticks -= 1;
  service_.reset();
  {
    auto pool = pool::Pool::open(pool_);
    ASSERT_TRUE(pool);
    ASSERT_TRUE(pool->change([&](pool::PoolState& state) -> Result<void> {
      for (int i = 0; i < 58; ++i) {
        pool::Job job = job_named("one");
        job.id = state.next_job++;
        job.uid = 1000;
        job.user = "eve";
        job.keeper = gone;
        job.request.share = 0.01;
        job.devices = {"gpu:0"};
        job.state = pool::JobState::running;
        job.run.parts.assign(pool::RunNotice::kMostParts, {"gpu:0", 1.0 / 3, 1.0 / 3});
        state.leases.push_back({job.id, "gpu:0", 0.01, 10, 0});
        state.jobs.push_back(std::move(job));
      }
      return {};
    }));
  }
  open();
  const Caller other{1001, false, process::own_process_id()};
  for (const wire::Ask what : {wire::Ask::read, wire::Ask::around}) {
    const auto answer = ask(other, {.ask = what});
    ASSERT_TRUE(answer && !answer->error);
    EXPECT_LE(text_of(*answer).size(), wire::kLargestAnswer);
  }
}

TEST_F(ServiceTest, AProcessIsBroughtByTheKeeperAndWhoseItIs) {
  process::ChildProcess child = process::family(), other = process::family();
  const int own = static_cast<int>(::getuid());
  const Caller keeper = caller_for(child, own);
  const int64_t job = submit(keeper);
  const auto bring = [&](const Caller& caller, const process::ProcessId& process) {
    const auto answer = ask(caller, {.ask = wire::Ask::bring, .job = job, .process = process});
    return answer->error ? answer->error->message : std::string();
  };
  const process::ProcessId brought = process::process_id(other.pid()).value();
  if (find(job)->cgroup.empty()) GTEST_SKIP() << "may not make cgroups here";
  EXPECT_THAT(bring(caller_for(other, own), brought), HasSubstr("is kept by another process"));
  EXPECT_THAT(bring(caller_for(child, own + 1), brought), HasSubstr("belongs to"));
  process::ProcessId gone = brought;
  gone.start_ticks += 1;
  EXPECT_THAT(bring(keeper, gone), HasSubstr("there is no process"));
  EXPECT_THAT(bring(keeper, process::process_id(child.pid()).value()), HasSubstr("is a part of job 1 already"));
  EXPECT_EQ(bring(keeper, brought), "");
  const auto members = confine::cgroup_members(find(job)->cgroup);
  EXPECT_THAT(members, testing::Contains(brought));
  for (const process::ProcessId& one : process::all_descendants(other.pid()))
    EXPECT_THAT(members, testing::Contains(one)) << "with what descends from it";
  apply(keeper, pool::End{.job = job});
  EXPECT_TRUE(ends(job));
  EXPECT_FALSE(is_alive(brought)) << "it is the job's";
}

TEST_F(ServiceTest, NobodyBringsTheProcessOfAnother) {
  process::ChildProcess child = process::family(), other = process::family();
  const Caller keeper = caller_for(child, static_cast<int>(::getuid()) + 1);
  const int64_t job = submit(keeper);
  if (find(job)->cgroup.empty()) GTEST_SKIP() << "may not make cgroups here";
  const auto answer =
      ask(keeper, {.ask = wire::Ask::bring, .job = job, .process = process::process_id(other.pid()).value()});
  ASSERT_TRUE(answer && answer->error);
  EXPECT_THAT(answer->error->message, HasSubstr("is not yours"));
}

TEST_F(ServiceTest, AProcessIsBroughtWithoutTheFrontsThatItHasStarted) {
  process::ChildProcess child = process::family(), shell = process::family();
  const int own = static_cast<int>(::getuid());
  const Caller keeper = caller_for(child, own);
  const int64_t job = submit(keeper);
  if (find(job)->cgroup.empty()) GTEST_SKIP() << "may not make cgroups here";
  const std::vector<process::ProcessId> started = process::all_descendants(shell.pid());
  const auto parent_of = [](const process::ProcessId& one) { return process::process_stat(one.pid)->parent; };
  const auto other = std::ranges::find_if(started, [&](const auto& one) { return parent_of(one) != shell.pid(); });
  ASSERT_NE(other, started.end()) << "a child of a child";
  pool::Job waits = job_named("waits");
  waits.request.count = 2;
  submit({own, false, *other}, waits);
  ask(keeper, {.ask = wire::Ask::bring, .job = job, .process = process::process_id(shell.pid()).value()});
  for (const process::ProcessId& one : confine::cgroup_members(find(job)->cgroup))
    EXPECT_THAT(one.pid, testing::AllOf(testing::Ne(other->pid), testing::Ne(parent_of(*other))));
}

TEST_F(ServiceTest, AProcessIsBroughtWithoutTheKeepersThatItHasStarted) {
  process::ChildProcess child = process::family(), shell = process::family();
  const int own = static_cast<int>(::getuid());
  const Caller keeper = caller_for(child, own);
  const int64_t job = submit(keeper);
  if (find(job)->cgroup.empty()) GTEST_SKIP() << "may not make cgroups here";
  const std::vector<process::ProcessId> started = process::all_descendants(shell.pid());
  ASSERT_THAT(started, testing::Not(testing::IsEmpty()));
  pool::Job waits = job_named("waits");
  waits.request.count = 2;
  const int64_t waiting = submit({own, false, started.back()}, waits);
  ask(keeper, {.ask = wire::Ask::bring, .job = job, .process = process::process_id(shell.pid()).value()});
  const auto members = confine::cgroup_members(find(job)->cgroup);
  EXPECT_THAT(members, testing::Contains(process::process_id(shell.pid()).value()));
  EXPECT_THAT(members, testing::Not(testing::Contains(started.back())));
  EXPECT_EQ(find(waiting)->state, pool::JobState::waiting);
}

}  // namespace
}  // namespace remuda::agent
