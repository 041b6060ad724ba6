#include "agent/adopt.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"
#include "pool/pool.h"
#include "pool/transitions.h"
#include "process/testing/child_output.h"

namespace remuda::agent {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

pool::Job job_of(pool::PoolState& state, pool::JobState job_state) {
  pool::Job job{.id = state.next_job++,
                .user = "ada",
                .uid = static_cast<int>(::getuid()),
                .state = job_state,
                .keeper = process::own_process_id()};
  job.request.count = 1;
  return job;
}

/// A pool that a group may write, with an ended job, one that runs and one that waits.
class AdoptTest : public testing::Test {
 protected:
  AdoptTest() {
    EXPECT_EQ(::mkdir(pool_.c_str(), 0770), 0);
    EXPECT_EQ(::chmod(pool_.c_str(), 02770), 0);
    auto opened = pool::Pool::open(pool_);
    EXPECT_TRUE(opened) << opened.error().message;
    users_.emplace(std::move(*opened));
    EXPECT_TRUE(users_->change([](pool::PoolState& state) -> Result<void> {
      for (const auto each : {pool::JobState::running, pool::JobState::waiting, pool::JobState::waiting})
        state.jobs.push_back(job_of(state, each));
      state.leases = {{1, "gpu:0", 1, 10, 0}};
      return {};
    }));
    EXPECT_TRUE(users_->change([](pool::PoolState& state) -> Result<void> {
      end(state, 3, {}, {}, 20);
      return {};
    }));
  }

  ScratchFolder folder_;
  const std::string pool_ = folder_.path("pool");
  std::optional<pool::Pool> users_;  ///< as a keeper of before has it open
};

TEST_F(AdoptTest, KeepsTheLeasesAndEndsWhatWaits) {
  EXPECT_EQ(mode_of(pool_ + "/pool.db"), 0660U);
  const auto adopted = adopt_pool(pool_);
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_EQ(*adopted,
            "took over " + pool_ +
                ", which its users could write: 1 running jobs keep their devices until they end, 1 waiting ones "
                "ended");
  EXPECT_EQ(mode_of(pool_), 0700U);
  EXPECT_EQ(mode_of(pool_ + "/pool.db"), 0600U);
  auto pool = pool::Pool::open(pool_);
  ASSERT_TRUE(pool) << pool.error().message;
  const auto state = pool->read();
  ASSERT_TRUE(state);
  EXPECT_EQ(state->next_job, 4);
  ASSERT_EQ(state->jobs.size(), 1U);
  EXPECT_EQ(state->jobs[0].state, pool::JobState::running);
  EXPECT_EQ(state->leases.size(), 1U);
  EXPECT_EQ((*pool->find(2))->why, "its pool went over to the agent: submit it again");
  EXPECT_EQ((*pool->find(3))->state, pool::JobState::ended);
}

TEST_F(AdoptTest, WhatDoesNotHaveThePoolOpenIsNobodysKeeper) {
  if (::geteuid() != 0) GTEST_SKIP() << "only an agent of root asks";
  process::ChildProcess child = process::family();
  const auto name = [&](const process::ProcessId& keeper, int uid) {
    EXPECT_TRUE(users_->change([&](pool::PoolState& state) -> Result<void> {
      pool::Job job = job_of(state, pool::JobState::running);
      job.keeper = keeper;
      job.uid = uid;
      state.leases.push_back({job.id, fmt::format("gpu:{}", job.id), 1, 10, 0});
      state.jobs.push_back(std::move(job));
      return {};
    }));
  };
  const int own = static_cast<int>(::getuid());
  name(process::process_id(child.pid()).value(), own);
  name(process::own_process_id(), own + 1);
  ASSERT_TRUE(adopt_pool(pool_));
  auto pool = pool::Pool::open(pool_);
  ASSERT_TRUE(pool) << pool.error().message;
  ASSERT_EQ(pool->read()->leases.size(), 1U) << "of the job whose keeper has it open";
  for (const int64_t forged : {4, 5})
    EXPECT_EQ((*pool->find(forged))->why, "its record names a process that does not keep it");
}

TEST_F(AdoptTest, ThoseWhoHadItOpenCanNoLongerChangeIt) {
  ASSERT_TRUE(adopt_pool(pool_));
  const auto changed = users_->change([](pool::PoolState& state) -> Result<void> {
    end(state, 1, {}, {}, 30);
    return {};
  });
  ASSERT_FALSE(changed);
  EXPECT_FALSE(users_->may_try_again());
  EXPECT_EQ(pool::Pool::open(pool_)->read()->leases.size(), 1U);
}

TEST_F(AdoptTest, APrivatePoolIsLeftAlone) {
  ASSERT_TRUE(adopt_pool(pool_));
  const auto again = adopt_pool(pool_);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, "");
  EXPECT_EQ(adopt_pool(folder_.path("new/pool")).value_or("x"), "");
  EXPECT_EQ(mode_of(folder_.path("new/pool")), 0700U);
}

}  // namespace
}  // namespace remuda::agent
