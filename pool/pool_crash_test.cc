// Kills a process at each of its calls to the file system, and checks what is left.
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool/pool.h"
#include "pool/testing/faulty_vfs.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"
#include "process/testing/in_child.h"

namespace remuda::pool {
namespace {

namespace fs = std::filesystem;

const Inventory& crash_box() {
  static const Inventory inventory = test_box(4);
  return inventory;
}

Job kept_job(const std::string& user, int count) {
  static const process::ProcessId keeper = process::own_process_id();
  Job job = test_job(user, count);
  job.keeper = keeper;  // the same in every child
  return job;
}

/// A job that starts at once, and one that cannot.
Result<void> submit_and_schedule(PoolState& state) {
  REMUDA_TRY(submit(state, kept_job("ada", 2), crash_box(), 100));
  REMUDA_TRY(submit(state, kept_job("bob", 3), crash_box(), 100));
  schedule(state, crash_box(), {}, {}, 100);
  return {};
}

Result<void> end_first(PoolState& state) {
  end(state, state.jobs.front().id, {}, {}, 200);
  schedule(state, crash_box(), {}, {}, 200);
  return {};
}

using Change = Result<void> (*)(PoolState&);

std::string change_pool(const std::string& folder, Change change) {
  auto pool = Pool::open(folder);
  if (!pool) return pool.error().message;
  const auto outcome = pool->change(change);
  return outcome ? "done" : outcome.error().message;
}

PoolState state_of(const std::string& folder) {
  auto pool = Pool::open(folder);
  if (!pool) return ADD_FAILURE() << pool.error().message, PoolState{};
  auto state = pool->read();
  if (!state) return ADD_FAILURE() << state.error().message, PoolState{};
  for (const Job& job : state->jobs)
    if (job.state == JobState::running) state->jobs.edit(job).clock = {};  // of this machine
  state->jobs.forget_touched();
  return *state;
}

/// Fills the write-ahead log so far that the next change moves its pages into the database.
void fill_log(const std::string& folder) {
  constexpr uintmax_t kPages = 245 * 4096;
  auto pool = Pool::open(folder);
  ASSERT_TRUE(pool) << pool.error().message;
  for (int i = 0; fs::file_size(folder + "/pool.db-wal") < kPages; ++i) {
    ASSERT_LT(i, 1000);
    ASSERT_TRUE(pool->change([i](PoolState& state) -> Result<void> {
      state.jobs.front().name = std::to_string(i);
      return {};
    }));
  }
}

/// Dies at call number `at`; sends "done" when the change returned before.
process::ChildEnd change_and_die(const std::string& folder, Change change, int at) {
  return process::in_child([&](const process::Say& say) {
    int calls = 0;
    install_faulty_vfs();
    set_on_file_call([&](FileCall) { return ++calls == at ? ::kill(::getpid(), SIGKILL) : 0; });
    say(change_pool(folder, change));
    return std::string();
  });
}

/// Copies `origin`, kills `change` there at every call in turn, and checks that the state is always that before or
/// after it.
void expect_whole_or_absent(const std::string& origin, Change change) {
  const TestFolder scratch;
  const std::string folder = scratch.path("copy");
  const PoolState before = state_of(origin);
  PoolState after = before;
  ASSERT_TRUE(change(after));
  after.jobs.erase_if([](const Job& job) { return job.state == JobState::ended; });
  int died = 0, changed = 0;
  for (int at = 1;; ++at) {
    fs::remove_all(folder);
    fs::copy(origin, folder, fs::copy_options::recursive);
    const process::ChildEnd end = change_and_die(folder, change, at);
    const PoolState found = state_of(folder);
    EXPECT_TRUE(found == before || found == after) << "killed at call " << at;
    EXPECT_EQ(check(found), "");
    if (!end.said.empty()) {
      EXPECT_EQ(end.said, "done");
      EXPECT_EQ(found.jobs, after.jobs) << "promised, and lost at call " << at;
    }
    EXPECT_EQ(change_pool(folder, submit_and_schedule), "done") << "after a kill at call " << at;
    if (!WIFSIGNALED(end.status)) break;
    ++died;
    changed += found == after;
  }
  EXPECT_GT(died, 10);
  EXPECT_LT(changed, died);
}

TEST(PoolCrash, LeavesANewPoolWholeOrAbsent) {
  for (int at = 1;; ++at) {
    const TestFolder folder;
    const process::ChildEnd end = change_and_die(folder.path(), submit_and_schedule, at);
    const size_t jobs = state_of(folder.path()).jobs.size();
    EXPECT_TRUE(jobs == 0 || jobs == 2) << "killed at call " << at;
    EXPECT_TRUE(end.said.empty() || jobs == 2) << "promised, and lost at call " << at;
    EXPECT_EQ(change_pool(folder.path(), submit_and_schedule), "done");
    if (!WIFSIGNALED(end.status)) break;
  }
}

TEST(PoolCrash, LeavesASubmissionWholeOrAbsent) {
  const TestFolder folder;
  ASSERT_EQ(change_pool(folder.path(), submit_and_schedule), "done");
  expect_whole_or_absent(folder.path(), submit_and_schedule);
}

TEST(PoolCrash, LeavesAnEndWholeOrAbsent) {
  const TestFolder folder;
  ASSERT_EQ(change_pool(folder.path(), submit_and_schedule), "done");
  expect_whole_or_absent(folder.path(), end_first);
}

TEST(PoolCrash, LeavesAChangeWholeOrAbsentWhileTheLogIsMovedIntoTheDatabase) {
  const TestFolder folder;
  ASSERT_EQ(change_pool(folder.path(), submit_and_schedule), "done");
  fill_log(folder.path());
  expect_whole_or_absent(folder.path(), submit_and_schedule);
}

}  // namespace
}  // namespace remuda::pool
