#include "agent/holds.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <optional>
#include <set>
#include <unistd.h>
#include <utility>

#include "base/testing/scratch_folder.h"
#include "confine/cgroup.h"
#include "process/status.h"
#include "process/testing/child_output.h"
#include "process/tree.h"

namespace remuda::agent {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

pool::Job running(int64_t id, const process::ProcessId& keeper) {
  pool::Job job{.id = id, .state = pool::JobState::running, .keeper = keeper};
  job.request.count = 1;
  return job;
}

process::ProcessId id_of(const process::ChildProcess& child) { return process::process_id(child.pid()).value(); }

class HoldsTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& cgroup : job_cgroups(folder_.path())) {
      confine::kill_cgroup(cgroup);
      EXPECT_TRUE(confine::remove_cgroup(cgroup, 5)) << cgroup << " is left";
    }
  }
  /// The cgroup of a job that begins; empty where none can be made.
  std::string begin(const pool::Job& job) {
    holds_.add(job);
    return holds_.begin(job, std::nullopt, {}, 0).cgroup;
  }

  /// How many jobs end in so many seconds, of which each step takes 0.01.
  int ends_within(double seconds) {
    int ended = 0;
    for (const double end_s = now_s_ + seconds; now_s_ < end_s; now_s_ += 0.01)
      for (const pool::Operation& operation : holds_.step(now_s_)) {
        holds_.forget(std::get<pool::End>(operation).job);
        ++ended;
      }
    return ended;
  }

  ScratchFolder folder_;
  Holds holds_{folder_.path()};
  double now_s_ = 0;
};

TEST_F(HoldsTest, WhoHasTheNumberOfAKeeperThatIsGoneIsLeftAlone) {
  process::ChildProcess other = process::family();
  const auto children = process::all_descendants(other.pid());
  ASSERT_THAT(children, Not(IsEmpty()));
  process::ProcessId of_another_boot = id_of(other), before_it = id_of(other);
  of_another_boot.boot_id = "another";
  before_it.start_ticks -= 1;
  for (const auto& [job, keeper] : {std::pair(1, of_another_boot), std::pair(2, before_it)}) {
    holds_.add(running(job, keeper));
    EXPECT_FALSE(holds_.find_again(running(job, keeper), {}, 0, 0));
  }
  EXPECT_EQ(ends_within(1), 2) << "both have ended";
  ::usleep(100'000);
  EXPECT_EQ(process::all_descendants(other.pid()), children);
}

// It could not be held there, and each that tried would cost the agent a look at all processes.
TEST_F(HoldsTest, NothingEntersAJobWithoutACgroup) {
  process::ChildProcess keeper = process::family(), enters = process::family();
  const auto children = process::all_descendants(enters.pid());
  holds_.add(running(1, id_of(keeper)));
  EXPECT_FALSE(holds_.find_again(running(1, id_of(keeper)), {}, 0, 0)) << "it is in no cgroup";
  EXPECT_FALSE(holds_.enter(1, id_of(enters)));
  holds_.say(1, pool::End{.job = 1}, 0);
  holds_.step(0);
  ::usleep(100'000);
  EXPECT_TRUE(is_alive(id_of(enters)));
  EXPECT_EQ(process::all_descendants(enters.pid()), children);
}

/// As where no cgroup can be made.
TEST_F(HoldsTest, AJobWithoutACgroupEndsOnceALookAtAllProcessesHasFoundNoneOfIt) {
  process::ChildProcess keeper = process::family();
  const auto children = process::all_descendants(keeper.pid());
  holds_.add(running(1, id_of(keeper)));
  EXPECT_FALSE(holds_.find_again(running(1, id_of(keeper)), {}, 0, 0));
  holds_.step(now_s_);
  EXPECT_LE(holds_.next_s(), 1) << "what descends from it is looked at again";
  process::send_signal(id_of(keeper), SIGKILL);
  process::await_exit(keeper);
  EXPECT_THAT(holds_.step(now_s_), IsEmpty()) << "nobody has looked since";
  int ended = 0;
  for (int i = 0; i < 1000 && ended == 0; ++i, ::usleep(5000)) ended += ends_within(0.1);
  EXPECT_EQ(ended, 1);
  for (const process::ProcessId& child : children) EXPECT_FALSE(is_alive(child)) << "killed, though nobody's child";
}

TEST_F(HoldsTest, AJobWithoutACgroupIsLookedAtAnewOnceItsKeeperIsGone) {
  auto keeper = process::ChildProcess::spawn({.argv = {"/bin/sleep", "1000"}});
  ASSERT_TRUE(keeper);
  holds_.add(running(1, id_of(*keeper)));
  EXPECT_FALSE(holds_.find_again(running(1, id_of(*keeper)), {}, 0, 0));
  EXPECT_EQ(ends_within(0.5), 0);
  process::send_signal(id_of(*keeper), SIGKILL);
  process::await_exit(*keeper);
  EXPECT_THAT(holds_.step(now_s_), IsEmpty()) << "it may have started another process since the last look";
  EXPECT_EQ(ends_within(2), 1);
}

TEST_F(HoldsTest, OfManyProcessesOfAJobEachStepKillsSome) {
  process::ChildProcess keeper = process::crowd(250);
  const std::string cgroup = begin(running(1, id_of(keeper)));
  if (cgroup.empty()) GTEST_SKIP() << "may not make cgroups here";
  ASSERT_THAT(confine::cgroup_members(cgroup), SizeIs(251));
  holds_.say(1, pool::End{.job = 1}, 0);
  holds_.step(0);
  ::usleep(300'000);
  EXPECT_THAT(confine::cgroup_members(cgroup), SizeIs(testing::AllOf(testing::Ge(151), testing::Le(152))))
      << "its keeper may be one of those";
  EXPECT_LE(holds_.next_s(), 0.02);
}

TEST_F(HoldsTest, NoJobTakesAProcessOutOfTheCgroupOfAnother) {
  process::ChildProcess keeper = process::family();
  const auto children = process::all_descendants(keeper.pid());
  const std::string first = begin(running(1, id_of(keeper)));
  if (first.empty()) GTEST_SKIP() << "may not make cgroups here";
  EXPECT_EQ(holds_.job_of(id_of(keeper)), 1);
  EXPECT_EQ(holds_.job_of(process::own_process_id()), 0);
  EXPECT_EQ(begin(running(2, children.at(0))), "") << "it is a process of job 1";
  EXPECT_EQ(begin(running(3, id_of(keeper))), "") << "it keeps job 1";
  for (const process::ProcessId& child : children) EXPECT_THAT(confine::cgroup_members(first), Contains(child));
  EXPECT_THAT(confine::cgroup_members(first), Contains(id_of(keeper)));
}

TEST_F(HoldsTest, AKeeperTakesNoneOfAnotherJobWithIt) {
  process::ChildProcess keeper = process::family();
  const auto children = process::all_descendants(keeper.pid());
  const std::string inner = begin(running(1, children.at(0)));
  if (inner.empty()) GTEST_SKIP() << "may not make cgroups here";
  const auto members = confine::cgroup_members(inner);
  EXPECT_NE(begin(running(2, id_of(keeper))), "");
  EXPECT_EQ(confine::cgroup_members(inner), members);
}

TEST_F(HoldsTest, WhatCallsItselfADaemonIsAProcessOfTheJob) {
  process::ChildProcess keeper = process::family({{"REMUDA_DAEMON", "x"}});
  const std::string cgroup = begin(running(1, id_of(keeper)));
  if (cgroup.empty()) GTEST_SKIP() << "may not make cgroups here";
  EXPECT_THAT(confine::cgroup_members(cgroup), SizeIs(process::all_descendants(keeper.pid()).size() + 1));
}

TEST_F(HoldsTest, ManyThatEndAtOnceEndAFewAtATime) {
  process::ProcessId gone = process::own_process_id();
  gone.start_ticks -= 1;
  constexpr int kMany = 100;
  for (int job = 1; job <= kMany; ++job) {
    pool::Job waiting = running(job, gone);
    waiting.state = pool::JobState::waiting;
    holds_.add(waiting);
  }
  int ended = 0;
  for (int step = 0; step < kMany && ended < kMany; ++step) {
    EXPECT_LE(holds_.next_s(), 1) << "more are left";
    for (const pool::Operation& operation : holds_.step(1)) {
      holds_.forget(std::get<pool::End>(operation).job);
      ++ended;
    }
    EXPECT_LE(ended, 16 * (step + 1));
  }
  EXPECT_EQ(ended, kMany);
}

TEST_F(HoldsTest, OfManyKeepersThatEndAtOnceAStepLetsGoOfSome) {
  const auto descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  constexpr int kMany = 200, kMostInAStep = 64;
  process::ChildProcess keeper = process::family();
  const process::ProcessId id = id_of(keeper);
  const auto without = descriptors();
  for (int job = 1; job <= kMany; ++job) {
    pool::Job waiting = running(job, id);
    waiting.state = pool::JobState::waiting;
    holds_.add(waiting);
  }
  ASSERT_EQ(descriptors(), without + kMany) << "one for the end of each";
  process::send_signal(id, SIGKILL);
  process::await_exit(keeper);
  int ended = 0;
  for (int step = 1; ended < kMany && step < kMany; ++step) {
    for (const pool::Operation& operation : holds_.step(1)) {
      holds_.forget(std::get<pool::End>(operation).job);
      ++ended;
    }
    EXPECT_GE(descriptors(), without + kMany - kMostInAStep * step);
  }
  EXPECT_EQ(ended, kMany);
  EXPECT_EQ(descriptors(), without);
}

/// When job 1 has ended, whose keeper says now, at 1, that it did at 600 of the wall clock. 0: now; -1: it does not
/// end.
double end_of_first(Holds& holds) {
  holds.say(1, pool::End{1, {.ended_s = 600}}, 1);
  for (int i = 0; i < 1000; ++i) {
    const auto over = holds.step(1 + i * 0.02);
    if (!over.empty()) return std::get<pool::End>(over.front()).ending.ended_s;
    ::usleep(2000);
  }
  return -1;
}

TEST_F(HoldsTest, AJobThatHasRunOnHasNotEndedWhileThereWasNoAgent) {
  process::ChildProcess keeper = *process::ChildProcess::spawn({.argv = {"/bin/sleep", "1000"}});
  process::ChildProcess comes = *process::ChildProcess::spawn({.argv = {"/bin/sleep", "1000"}});
  pool::Job job = running(1, id_of(keeper));
  job.cgroup = begin(job);
  if (job.cgroup.empty()) GTEST_SKIP() << "may not make cgroups here";
  const auto ended_s = [&](bool runs_on) {
    Holds next(folder_.path());
    next.add(job);
    EXPECT_TRUE(next.find_again(job, {}, 500, 0));
    EXPECT_EQ(runs_on && next.enter(1, id_of(comes)), runs_on);
    return end_of_first(next);
  };
  EXPECT_EQ(ended_s(false), 600);
  EXPECT_EQ(ended_s(true), 0) << "now";
}

TEST_F(HoldsTest, WhatIsLeftOfAJobWithoutACgroupSaysWhetherItHasRunOn) {
  process::ChildProcess alone = *process::ChildProcess::spawn({.argv = {"/bin/sleep", "1000"}});
  process::ChildProcess others = process::family();
  const auto ended_s = [&](const process::ProcessId& keeper) {
    Holds next(folder_.path());
    next.add(running(1, keeper));
    EXPECT_FALSE(next.find_again(running(1, keeper), {}, 500, 0));
    EXPECT_THAT(next.step(0.5), IsEmpty());
    return end_of_first(next);
  };
  EXPECT_EQ(ended_s(id_of(alone)), 600);
  EXPECT_EQ(ended_s(id_of(others)), 0) << "now";
}

TEST_F(HoldsTest, AKeeperIsWaitedForAsLongAsItHasADeviceOpenAlsoAfterARestart) {
  process::ChildProcess keeper =
      *process::ChildProcess::spawn({.argv = {"/bin/sh", "-c", "exec 3</dev/full; exec sleep 1000"}});
  const std::string third = "/proc/" + std::to_string(keeper.pid()) + "/fd/3";
  for (int i = 0; i < 1000 && !std::filesystem::exists(third); ++i) ::usleep(1000);
  const confine::DeviceNode full{1, 7}, none{250, 250};
  for (const auto& [job, node] : {std::pair(1, full), std::pair(2, none)}) {
    holds_.add(running(job, id_of(keeper)));
    holds_.find_again(running(job, id_of(keeper)), {node}, 0, 0);
    holds_.say(job, pool::End{.job = job}, 0);
  }
  const auto over = holds_.step(0.1);
  ASSERT_THAT(over, SizeIs(1));
  EXPECT_EQ(std::get<pool::End>(over.front()).job, 2);
}

/// As the kernel names it: T is stopped.
char state_of(const process::ChildProcess& child) {
  std::ifstream file("/proc/" + std::to_string(child.pid()) + "/stat");
  std::string number, name;
  char state = '?';
  file >> number >> name >> state;
  return state;
}

TEST_F(HoldsTest, AKeeperIsAskedToEndInEachOfItsTurnsAlsoWhereItIsStopped) {
  process::ChildProcess keeper = *process::ChildProcess::spawn({.argv = {"/bin/sleep", "1000"}});
  pool::Job job = running(1, id_of(keeper));
  for (const double now_s : {100, 200}) {
    holds_.add(job);
    holds_.find_again(job, {}, 0, now_s);
    pool::Job asked = job;
    asked.preempted_by = 2;
    keeper.signal(SIGSTOP);
    for (int i = 0; i < 1000 && state_of(keeper) != 'T'; ++i) ::usleep(1000);
    holds_.see(asked, now_s);
    for (int i = 0; i < 1000 && state_of(keeper) == 'T'; ++i) ::usleep(1000);
    EXPECT_NE(state_of(keeper), 'T');
    EXPECT_LE(holds_.next_s(), now_s + 5) << "it does not wait for longer than that";
    holds_.rest(1);
    holds_.step(now_s);
  }
}

TEST_F(HoldsTest, NobodyIsEndedForADelayOfTheAgents) {
  process::ChildProcess child = process::family();
  pool::Job job = running(1, id_of(child));
  begin(job);
  job.cancelled = true, job.grace_s = 10;
  holds_.see(job, 0);
  holds_.postpone(14);
  EXPECT_THAT(holds_.step(20), IsEmpty());
  EXPECT_TRUE(is_alive(job.keeper)) << "it may have said that it has ended, while nobody listened";
  for (int i = 0; i < 1000; ++i) holds_.postpone(1);  // more than a minute in all
  EXPECT_THAT(holds_.step(70), IsEmpty());
  EXPECT_TRUE(is_alive(job.keeper));
  EXPECT_THAT(holds_.step(80), IsEmpty());
  for (int i = 0; i < 1000 && is_alive(job.keeper); ++i) ::usleep(10000);
  EXPECT_FALSE(is_alive(job.keeper)) << "a minute in all";
}

TEST_F(HoldsTest, DelaysThatDelayNobodyAreNotCounted) {
  process::ChildProcess child = process::family();
  pool::Job job = running(1, id_of(child));
  begin(job);
  for (int i = 0; i < 1000; ++i) holds_.postpone(1);
  job.cancelled = true, job.grace_s = 10;
  holds_.see(job, 0);
  holds_.postpone(14);
  EXPECT_THAT(holds_.step(20), IsEmpty());
  EXPECT_TRUE(is_alive(job.keeper));
}

TEST_F(HoldsTest, AKeeperWaitsUntilItsWordIsWritten) {
  auto child = process::ChildProcess::spawn({.argv = {"/bin/sleep", "1000"}});
  const pool::Job job = running(1, id_of(*child));
  begin(job);
  holds_.say(1, pool::End{.job = 1, .ending = {.exit_status = 7}}, 0);
  int given = 0;
  for (double now_s = 0; now_s < 30; now_s += 0.5, ::usleep(2000)) given += int(!holds_.step(now_s).empty());
  EXPECT_GT(given, 20);
  EXPECT_TRUE(holds_.has_word(1, 30));
  EXPECT_TRUE(is_alive(job.keeper));
}

TEST_F(HoldsTest, NoProcessOfAnotherUserComesIntoAJobWithItsKeeper) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  auto child =
      process::ChildProcess::spawn({.argv = {"/bin/sh", "-c", "setpriv --reuid 61003 sleep 1000 & sleep 1000 & wait"}});
  const auto is_up = [&] {
    const auto all = process::all_descendants(child->pid());
    return all.size() == 2 && std::ranges::count(all, 61003, [](const process::ProcessId& one) {
                                return process::sole_user_of(one.pid).value_or(-1);
                              }) == 1;
  };
  for (int i = 0; i < 1000 && !is_up(); ++i) ::usleep(10000);
  ASSERT_TRUE(is_up());
  const std::string cgroup = begin(running(1, id_of(*child)));
  if (cgroup.empty()) GTEST_SKIP() << "may not make cgroups here";
  EXPECT_THAT(confine::cgroup_pids(cgroup), SizeIs(2)) << "the keeper and what is its user's";
  for (const process::ProcessId& one : process::all_descendants(child->pid()))
    process::send_signal(one, SIGKILL);  // no cgroup has the other
}

TEST_F(HoldsTest, AnAgentThatStopsLeavesTheCgroupsOfJobsThatGoOnAndNoOthers) {
  process::ChildProcess over = process::family(), goes_on = process::family();
  std::optional<Holds> holds(folder_.path());
  std::vector<std::string> cgroups;
  for (const auto& [job, keeper] : {std::pair(1, id_of(over)), std::pair(2, id_of(goes_on))}) {
    holds->add(running(job, keeper));
    cgroups.push_back(holds->begin(running(job, keeper), std::nullopt, {}, 0).cgroup);
  }
  if (cgroups.front().empty()) GTEST_SKIP() << "may not make cgroups here";
  holds->forget(1);
  over.signal(SIGKILL);
  holds.reset();
  const auto left = job_cgroups(folder_.path());
  EXPECT_THAT(left, Contains(cgroups.back()));
  EXPECT_THAT(left, Each(HasSubstr("-2"))) << "those of job 2, in each tree";
  EXPECT_THAT(confine::cgroup_members(cgroups.back()), Contains(id_of(goes_on)));
}

TEST_F(HoldsTest, WhatCannotBeAppliedIsGivenASecondLaterAndKeepsNothingBack) {
  process::ProcessId gone = process::own_process_id();
  gone.start_ticks -= 1;
  constexpr int kMany = 50;
  for (int job = 1; job <= kMany; ++job) holds_.add(running(job, gone));
  std::set<int64_t> given;
  for (int step = 0; step < kMany; ++step)
    for (const pool::Operation& operation : holds_.step(1)) given.insert(std::get<pool::End>(operation).job);
  EXPECT_THAT(given, SizeIs(kMany));
  EXPECT_THAT(holds_.step(1.5), IsEmpty());
  EXPECT_GT(holds_.next_s(), 1.5);
  EXPECT_THAT(holds_.step(2.5), Not(IsEmpty()));
}

}  // namespace
}  // namespace remuda::agent
