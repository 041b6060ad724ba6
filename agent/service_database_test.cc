// What a service does where its database is busy, or damaged.
#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include "agent/testing/service_fixture.h"
#include "pool/testing/faulty_vfs.h"

namespace remuda::agent {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST_F(ServiceTest, WhereTheDatabaseIsBusyChangesWaitAndNothingElseDoes) {
  process::ChildProcess child = process::family(), next = process::family();
  const Caller user = caller_for(child), later = caller_for(next);
  auto other = pool::Pool::open(pool_);
  ASSERT_TRUE(other);
  const pool::Submit submission{.job = job_named("one")};
  (void)other->change([&](pool::PoolState&) -> Result<void> {
    EXPECT_FALSE(apply(user, submission, "same")) << "it is asked again";
    EXPECT_FALSE(apply(user, pool::Cancel{{99}}, "at once")) << "one look is enough for all";
    EXPECT_TRUE(ask(user, {.ask = wire::Ask::read}));
    return {};
  });
  now_s_ += 1;
  const auto done = apply(user, submission, "same");
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->error);
  (void)other->change([&](pool::PoolState&) -> Result<void> {
    EXPECT_FALSE(apply(later, submission, "another"));
    now_s_ += 11;
    const auto refused = apply(later, submission, "another");
    EXPECT_TRUE(refused && refused->error && refused->may_try_again) << "nobody waits without end";
    return {};
  });
}

TEST_F(ServiceTest, WhereTheDatabaseIsBusyKeepersAreHeardAndTheirWordsWrittenLater) {
  process::ChildProcess child = process::family(), next = process::family();
  const Caller keeper = caller_for(child), waits = caller_for(next);
  const int64_t job = submit(keeper);
  auto other = pool::Pool::open(pool_);
  ASSERT_TRUE(other);
  const pool::End word{.job = job, .ending = {.exit_status = 7}};
  (void)other->change([&](pool::PoolState&) -> Result<void> {
    EXPECT_FALSE(apply(waits, pool::Submit{.job = job_named("next")}, "next"));
    EXPECT_FALSE(apply(keeper, word, "word")) << "it is heard, and answered once it is written";
    return {};
  });
  EXPECT_TRUE(ends(job));
  EXPECT_EQ(find(job)->exit_status, 7);
}

TEST_F(ServiceTest, WhatABusyDatabaseDoesNotTakeOfTheAgentIsWrittenLater) {
  process::ChildProcess first = process::family(), second = process::family(), third = process::family();
  const int64_t running = submit(caller_for(first)), also = submit(caller_for(second));
  const int64_t waiting = submit(caller_for(third));
  EXPECT_EQ(find(waiting)->state, pool::JobState::waiting);
  auto other = pool::Pool::open(pool_);
  ASSERT_TRUE(other);
  apply(caller_for(first), pool::End{.job = running});
  apply(caller_for(second), pool::End{.job = also});
  (void)other->change([&](pool::PoolState&) -> Result<void> {
    for (int i = 0; i < 20; ++i) service_->step(now_s_ += 0.1);
    return {};
  });
  EXPECT_TRUE(ends(running));
  EXPECT_TRUE(ends(also));
}

TEST_F(ServiceTest, ARecordThatCannotBeReadIsPutAside) {
  process::ChildProcess child = process::family(), other = process::family();
  const int64_t broken = submit(caller_for(child)), whole = submit(caller_for(other));
  service_.reset();
  folder_.write("pool/unread-1", "of an earlier pool");
  {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((pool_ + "/pool.db").c_str(), &database), SQLITE_OK);
    EXPECT_EQ(
        sqlite3_exec(database, "UPDATE job SET record = '{\"id\": 1, \"user' WHERE id = 1", nullptr, nullptr, nullptr),
        SQLITE_OK);
    sqlite3_close(database);
  }
  open();
  EXPECT_FALSE(find(broken));
  ASSERT_TRUE(find(whole));
  EXPECT_EQ(find(whole)->state, pool::JobState::running);
  const auto page = wire::parse_page(ask({0, true, process::own_process_id()}, {.ask = wire::Ask::read})->result);
  ASSERT_TRUE(page);
  ASSERT_THAT(page->state.drains, SizeIs(1));
  EXPECT_THAT(page->state.drains[0].reason, HasSubstr("job 1, whose record cannot be read"));
  EXPECT_TRUE(std::filesystem::exists(pool_ + "/unread-1-2")) << "what an earlier pool has left is kept";
}

TEST_F(ServiceTest, AFullDiskIsTriedAgainAndNotWithoutAPause) {
  service_.reset();
  pool::install_faulty_vfs();
  open();
  process::ChildProcess child = process::family();
  const int64_t job = submit(caller_for(child));
  pool::set_on_file_call([](pool::FileCall call) { return call == pool::FileCall::write ? SQLITE_FULL : SQLITE_OK; });
  EXPECT_FALSE(apply(caller_for(child), pool::End{.job = job}));
  int rounds = 0;
  for (const double end_s = now_s_ + 3; now_s_ < end_s; ++rounds) {
    service_->step(now_s_);
    now_s_ = std::max(now_s_ + 0.001, service_->next_s(now_s_));
    ::usleep(1000);
  }
  EXPECT_LT(rounds, 300) << "some 20 ms apart, while the processes of the job end";
  EXPECT_EQ(find(job)->state, pool::JobState::running);
  pool::set_on_file_call({});
  EXPECT_TRUE(ends(job));
}

}  // namespace
}  // namespace remuda::agent
