#include "pool/pool.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/clock.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"
#include "process/testing/in_child.h"

namespace remuda::pool {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kLong_s = 30;  // no test waits so long unless it fails

Result<void> run_job(PoolState& state) {
  static const Inventory inventory = test_box(2);
  REMUDA_TRY(submit(state, test_job("ada", 1), inventory, 100));
  schedule(state, inventory, {}, {}, 100);
  return {};
}

Result<void> end_all(PoolState& state) {
  for (const Job& job : state.jobs) end(state, job.id, {}, {}, 200);
  return {};
}

Pool open_pool(const TestFolder& folder) {
  auto pool = Pool::open(folder.path("pool"));
  EXPECT_TRUE(pool) << pool.error().message;
  return std::move(*pool);
}

mode_t mode_of(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

TEST(Pool, IsEmptyWhenNew) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  EXPECT_EQ(*pool.read(), PoolState{});
}

/// Who submits and cancels thousands of jobs is rid of his own only.
TEST(Pool, ForgetsNoJobsOfOneUserForThoseOfAnother) {
  constexpr int kMost = 10'000, kMore = 500, kAda = 1000, kEve = 1001;
  const TestFolder folder;
  Pool pool = open_pool(folder);
  const auto end_jobs = [&pool](int uid, int count) {
    return pool.change([&](PoolState& state) -> Result<void> {
      for (int i = 0; i < count; ++i) {
        Job job = test_job(uid == kAda ? "ada" : "eve", 1);
        job.id = state.next_job++;
        job.uid = uid;
        job.state = JobState::ended;
        state.jobs.push_back(std::move(job));
      }
      return {};
    });
  };
  ASSERT_TRUE(end_jobs(kAda, 1));
  ASSERT_TRUE(end_jobs(kEve, kMost));
  ASSERT_TRUE(end_jobs(kEve, kMore));
  EXPECT_TRUE(*pool.find(1)) << "it is another user's";
  const auto kept = pool.ended(2 * kMost);
  ASSERT_TRUE(kept);
  EXPECT_GE(kept->size(), size_t{kMost});
  EXPECT_LE(kept->size(), size_t{kMost} + 100) << "those of one are bounded all the same";
}

TEST(Pool, IsPrivate) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  ASSERT_TRUE(pool.change(run_job));
  EXPECT_EQ(mode_of(folder.path("pool")), 0700);
  for (const char* file : {"pool/pool.db", "pool/pool.db-wal", "pool/pool.db-shm"})
    EXPECT_EQ(mode_of(folder.path(file)), 0600) << file;
}

TEST(Pool, IsTheGroupsWhereTheFolderIs) {
  const TestFolder folder;
  ASSERT_EQ(::mkdir(folder.path("pool").c_str(), 0700), 0);
  const gid_t group = ::geteuid() == 0 ? 12345 : ::getegid();
  ASSERT_EQ(::chown(folder.path("pool").c_str(), ::geteuid(), group), 0);
  ASSERT_EQ(::chmod(folder.path("pool").c_str(), 0770), 0);
  Pool pool = open_pool(folder);
  ASSERT_TRUE(pool.change(run_job));
  ASSERT_TRUE(pool.wait({}, 0));
  for (const char* file : {"pool/pool.db", "pool/pool.db-wal", "pool/pool.db-shm", "pool/bells"}) {
    struct stat info{};
    ASSERT_EQ(::stat(folder.path(file).c_str(), &info), 0);
    EXPECT_EQ(info.st_gid, group) << file;
    EXPECT_EQ(info.st_mode & 07777, S_ISDIR(info.st_mode) ? 02770 : 0660) << file;
  }
  for (const auto& bell : fs::directory_iterator(folder.path("pool/bells"))) EXPECT_EQ(mode_of(bell.path()), 0660);
}

TEST(Pool, KeepsWhatWasChanged) {
  const TestFolder folder;
  PoolState seen;
  {
    Pool pool = open_pool(folder);
    ASSERT_TRUE(pool.change(run_job));
    seen = *pool.read();
    EXPECT_THAT(seen.leases, SizeIs(1));
  }
  EXPECT_EQ(*open_pool(folder).read(), seen);
}

TEST(Pool, AnErrorChangesNothing) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  ASSERT_TRUE(pool.change(run_job));
  const PoolState before = *pool.read();
  const auto outcome = pool.change([](PoolState& state) -> Result<void> {
    REMUDA_TRY(end_all(state));
    return usage_error("not so");
  });
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "not so");
  EXPECT_EQ(*pool.read(), before);
}

TEST(Pool, ForgetsEndedJobsInItsStateAndFindsThem) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.change(run_job));
  ASSERT_TRUE(pool.change(end_all));
  EXPECT_THAT(pool.read()->jobs, IsEmpty());
  EXPECT_EQ((*pool.find(2))->state, JobState::ended);
  EXPECT_EQ(*pool.find(4), std::nullopt);
  const auto ended = pool.ended(2);
  ASSERT_THAT(*ended, SizeIs(2));
  EXPECT_EQ(ended->front().id, 3);
}

TEST(Pool, NeverGivesANumberTwice) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  for (int64_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(pool.change(run_job));
    ASSERT_TRUE(pool.change(end_all));
    EXPECT_EQ(pool.read()->next_job, id + 1);
  }
}

TEST(Pool, ShowsEndedJobsThatAreNamed) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  ASSERT_TRUE(pool.change(run_job));
  ASSERT_TRUE(pool.change(end_all));
  const auto later = [](PoolState& state) -> Result<void> {
    Job job = test_job("ada", 1);
    job.after = {1};
    REMUDA_TRY(submit(state, job, test_box(2), 300));
    return {};
  };
  EXPECT_FALSE(pool.change(later)) << "nobody asked for job 1";
  ASSERT_TRUE(pool.change(later, {1}));
  const auto state = pool.read();
  ASSERT_THAT(state->jobs, SizeIs(2));
  EXPECT_EQ(state->jobs.front().state, JobState::ended);
}

TEST(Pool, RemembersTheLastTenThousandAndThoseThatAreNamed) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  const auto fill = [](PoolState& state) -> Result<void> {
    Job job = test_job("ada", 1);
    job.state = JobState::ended;
    for (; state.next_job < 10250; ++state.next_job) {
      job.id = state.next_job;
      state.jobs.push_back(job);
    }
    job.id = state.next_job++;
    job.state = JobState::waiting;
    job.after = {7};
    state.jobs.push_back(job);
    return {};
  };
  ASSERT_TRUE(pool.change(fill));
  ASSERT_TRUE(pool.change([](PoolState& state) -> Result<void> {
    for (; state.next_job <= 10300; ++state.next_job) {
      Job job = test_job("ada", 1);
      job.id = state.next_job;
      state.jobs.push_back(std::move(job));
    }
    return {};
  }));
  EXPECT_FALSE(pool.find(8)->has_value());
  EXPECT_FALSE(pool.find(200)->has_value());
  EXPECT_TRUE(pool.find(300)->has_value());
  EXPECT_TRUE(pool.find(7)->has_value());
}

TEST(PoolWait, EndsWhenAnotherPoolChanged) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  Pool other = open_pool(folder);
  ASSERT_TRUE(pool.read());
  std::atomic<bool> woke = false;
  std::thread waiter([&] {
    EXPECT_TRUE(pool.wait({}, kLong_s));
    woke = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(woke);
  EXPECT_TRUE(other.change(run_job));
  const double start_s = monotonic_s();
  waiter.join();
  EXPECT_LT(monotonic_s() - start_s, kLong_s / 2);
}

TEST(PoolWait, MissesNoChangeThatCameBefore) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  Pool other = open_pool(folder);
  ASSERT_TRUE(pool.read());
  ASSERT_TRUE(other.change(run_job));
  const double start_s = monotonic_s();
  ASSERT_TRUE(pool.wait({}, kLong_s));
  ASSERT_TRUE(pool.wait({}, kLong_s)) << "it was not read yet";
  EXPECT_LT(monotonic_s() - start_s, kLong_s / 2);
}

TEST(PoolWait, IsNotEndedByItsOwnChangesOrByNone) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  Pool other = open_pool(folder);
  ASSERT_TRUE(pool.wait({}, 0));
  ASSERT_TRUE(pool.change(run_job));
  ASSERT_TRUE(other.change([](PoolState&) -> Result<void> { return {}; }));
  const double start_s = monotonic_s();
  ASSERT_TRUE(pool.wait({}, 0.05));
  EXPECT_GE(monotonic_s() - start_s, 0.05);
}

TEST(PoolWait, EndsWhenAProcessDoes) {
  const TestFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char go = 0;
    (void)!::read(ends[0], &go, 1);
    ::usleep(20000);
    ::_exit(0);
  }
  const process::ProcessId process = *process::process_id(child);
  Pool pool = open_pool(folder);
  ASSERT_EQ(::write(ends[1], "!", 1), 1);
  const double start_s = monotonic_s();
  ASSERT_TRUE(pool.wait({process::own_process_id(), process}, kLong_s));
  EXPECT_FALSE(is_alive(process));
  ASSERT_TRUE(pool.wait({process}, kLong_s)) << "it is gone";
  process::ProcessId earlier = process::own_process_id();
  --earlier.start_ticks;
  ASSERT_TRUE(pool.wait({earlier}, kLong_s)) << "its number was used again";
  EXPECT_LT(monotonic_s() - start_s, kLong_s / 2);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(PoolWait, EndsWhenADescriptorIsReadable) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[1]);
  const double start_s = monotonic_s();
  ASSERT_TRUE(pool.wait({}, kLong_s, {ends[0]}));
  EXPECT_LT(monotonic_s() - start_s, kLong_s / 2);
  ::close(ends[0]);
}

TEST(Pool, KeepsReasonsReadableHoweverManyHoldADevice) {
  const TestFolder folder;
  auto pool = Pool::open(folder.path());
  ASSERT_TRUE(pool);
  const Inventory box = test_box(1);
  const auto changed = pool->change([&](PoolState& state) -> Result<void> {
    for (int i = 0; i < 400; ++i) REMUDA_TRY(submit(state, test_job("ada", 1, 0.0025), box, 100));
    REMUDA_TRY(submit(state, test_job("bob", 1), box, 100));
    schedule(state, box, {}, {}, 100);
    return {};
  });
  ASSERT_TRUE(changed) << changed.error().message;
  const auto state = pool->read();
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->leases.size(), 400U);
  EXPECT_THAT(state->jobs.back().why, ::testing::HasSubstr("gpu:0 is held by ada (job 1), ada (job 2)"));
  EXPECT_LE(state->jobs.back().why.size(), 1024U);
}

/// Whatever state a transition leaves, what is committed can be read again.
TEST(Pool, CommitsNothingThatItCouldNotRead) {
  const TestFolder folder;
  auto pool = Pool::open(folder.path());
  ASSERT_TRUE(pool);
  ASSERT_TRUE(pool->change([](PoolState& state) -> Result<void> {
    REMUDA_TRY(submit(state, test_job("ada", 1), test_box(1), 100));
    return {};
  }));
  const auto before = pool->read();
  const std::vector<std::function<void(Job&)>> harms{
      [](Job& job) { job.cgroup = std::string(5000, 'x'); }, [](Job& job) { job.log = "a\nb"; },
      [](Job& job) { job.submitted_s = std::nan(""); }, [](Job& job) { job.request.share = 7; },
      [](Job& job) { job.daemons.assign(70000, "gpu:0"); }};
  for (size_t i = 0; i < harms.size(); ++i) {
    const auto changed = pool->change([&](PoolState& state) -> Result<void> {
      harms[i](state.jobs.front());
      return {};
    });
    ASSERT_FALSE(changed) << i;
    EXPECT_THAT(changed.error().message, ::testing::EndsWith("nothing was changed")) << i;
    EXPECT_EQ(*pool->read(), *before) << i;
  }
  const auto changed = pool->change([](PoolState& state) -> Result<void> {
    state.jobs.front().why = std::string(9000, 'w') + "\x1b[31m";
    return {};
  });
  EXPECT_TRUE(changed) << "a text for people is cut: " << changed.error().message;
  EXPECT_TRUE(pool->read());
}

TEST(PoolWait, SweepsBellsOfTheDead) {
  const TestFolder folder;
  const auto child = process::in_child([&](const process::Say&) {
    Pool pool = open_pool(folder);
    (void)pool.wait({}, 0);
    ::kill(::getpid(), SIGKILL);
    return std::string();
  });
  ASSERT_TRUE(WIFSIGNALED(child.status));
  const auto bells = [&] {
    return std::distance(fs::directory_iterator(folder.path("pool/bells")), fs::directory_iterator());
  };
  EXPECT_EQ(bells(), 1);
  Pool pool = open_pool(folder);
  ASSERT_TRUE(pool.change(run_job)) << "rings it, and nobody hears";
  ASSERT_TRUE(pool.wait({}, 0));
  EXPECT_EQ(bells(), 1) << "only its own";
}

TEST(PoolWait, IsNotDisturbedByStrangersAmongTheBells) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  fs::create_directory(folder.path("pool/bells/folder"));
  fs::create_symlink("/dev/full", folder.path("pool/bells/1.2.3"));
  folder.write("pool/bells/plain", "as it was");
  EXPECT_TRUE(pool.change(run_job));
  EXPECT_TRUE(pool.wait({}, 0));
  EXPECT_EQ(folder.read("pool/bells/plain"), "as it was");
}

using PoolDeathTest = ::testing::Test;

TEST(PoolDeathTest, DoesNotCrossAFork) {
  const TestFolder folder;
  Pool pool = open_pool(folder);
  EXPECT_DEATH((void)pool.read(), "a pool does not cross a fork") << "the statement runs in a child";
}

TEST(PoolDeathTest, LetsNoTransitionBreakTheRules) {
  const TestFolder folder;
  EXPECT_DEATH(
      {
        Pool pool = open_pool(folder);
        (void)pool.change([](PoolState& state) -> Result<void> {
          state.leases = {{.job = 5, .device = "gpu:0"}};
          return {};
        });
      },
      "bug in remuda: gpu:0 is held for job 5");
}

}  // namespace
}  // namespace remuda::pool
