// What jobs are charged for a time in which there was no agent.
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utility>

#include "agent/testing/service_fixture.h"
#include "process/tree.h"

namespace remuda::agent {
namespace {

/// A job that began 100 s ago, under an agent that was there until 50 s ago, with the processes of `child`.
class ServiceAfterAnOutage : public ServiceTest {
 protected:
  process::ChildProcess sleeper() { return *process::ChildProcess::spawn({.argv = {"/bin/sleep", "1000"}}); }
  int64_t outlast(const process::ChildProcess& keeper) {
    const int64_t job = submit(caller_for(keeper));
    EXPECT_EQ(find(job)->state, pool::JobState::running);
    service_.reset();
    EXPECT_TRUE(pool::Pool::open(pool_)->change([&](pool::PoolState& state) -> Result<void> {
      state.find(job)->started_s = wall_s_ - 100;
      for (pool::Lease& lease : state.leases) lease.since_s = wall_s_ - 100;
      return {};
    }));
    for (const auto& file : std::filesystem::directory_iterator(pool_)) {
      const timespec then{.tv_sec = std::lround(wall_s_) - 50, .tv_nsec = 0}, times[] = {then, then};
      ::utimensat(AT_FDCWD, file.path().c_str(), times, 0);
    }
    open();
    return job;
  }
  long ended_after_s(int64_t job) {
    EXPECT_TRUE(ends(job));
    return std::lround(find(job)->ended_s - wall_s_);
  }
  const double wall_s_ = remuda::wall_s();
};

TEST_F(ServiceAfterAnOutage, AKeeperSaysWhenItsJobEndedMeanwhile) {
  for (const auto& [said_s, ended_s] : {std::pair(-40, -40), std::pair(-90, -50)}) {
    process::ChildProcess keeper = sleeper();
    const int64_t job = outlast(keeper);
    apply(caller_for(keeper), pool::End{job, {.ended_s = wall_s_ + said_s}});
    EXPECT_EQ(ended_after_s(job), ended_s) << "it ran when the agent was there last";
  }
  process::ChildProcess keeper = sleeper();
  const int64_t job = outlast(keeper);
  apply(caller_for(keeper), pool::End{job, {.ended_s = wall_s_ + 1000}});
  EXPECT_GE(ended_after_s(job), 0);
}

TEST_F(ServiceAfterAnOutage, AJobWhoseKeeperIsGoneIsNotChargedForIt) {
  process::ChildProcess keeper = sleeper();
  const int64_t job = outlast(keeper);
  process::send_signal(process::process_id(keeper.pid()).value(), SIGKILL);
  EXPECT_EQ(ended_after_s(job), -50);
}

TEST_F(ServiceAfterAnOutage, WhoseProcessesAreThereStillRuns) {
  process::ChildProcess keeper = process::family();
  const int64_t job = outlast(keeper);
  apply(caller_for(keeper), pool::End{job, {.ended_s = wall_s_ - 40}});
  EXPECT_GE(ended_after_s(job), 0);
}

TEST_F(ServiceAfterAnOutage, AKeeperThatSaysNothingForLongHasTheDevicesMeanwhile) {
  process::ChildProcess keeper = sleeper();
  const int64_t job = outlast(keeper);
  now_s_ += 121;
  apply(caller_for(keeper), pool::End{job, {.ended_s = wall_s_ - 40}});
  EXPECT_GE(ended_after_s(job), 0);
}

TEST_F(ServiceTest, AKeeperDoesNotSayWhenAJobEndedThatTheAgentHasSeen) {
  process::ChildProcess keeper = process::family();
  const double began_s = wall_s();
  const int64_t job = submit(caller_for(keeper));
  apply(caller_for(keeper), pool::End{job, {.ended_s = began_s - 40}});
  EXPECT_TRUE(ends(job));
  EXPECT_GE(find(job)->ended_s, began_s);
}

TEST_F(ServiceTest, LeavesATraceWhileJobsRun) {
  const auto time_of_trace = [&] {
    service_->step(now_s_);
    struct stat info{};
    return ::stat((pool_ + "/agent.seen").c_str(), &info) == 0 ? info.st_mtim.tv_sec : 0;
  };
  const auto forget = [&] {
    const timespec then[] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
    ::utimensat(AT_FDCWD, (pool_ + "/agent.seen").c_str(), then, 0);
  };
  now_s_ += 1000;
  EXPECT_EQ(time_of_trace(), 0) << "nothing runs";
  read_machine();
  process::ChildProcess keeper = process::family();
  submit(caller_for(keeper));
  EXPECT_GT(time_of_trace(), 1);
  forget();
  EXPECT_EQ(time_of_trace(), 1) << "that is enough for now";
  EXPECT_LE(service_->next_s(now_s_), now_s_ + 60);
  now_s_ += 61;
  EXPECT_GT(time_of_trace(), 1);
}

}  // namespace
}  // namespace remuda::agent
