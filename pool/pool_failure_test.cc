// Failures outside the program: of the disk, the folder, the file.
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pool/pool.h"
#include "pool/testing/faulty_vfs.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"
#include "process/testing/in_child.h"
#include "sqlite/database.h"

namespace remuda::pool {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Result<void> add_job(PoolState& state) {
  static const Inventory inventory = test_box(4);
  REMUDA_TRY(submit(state, test_job("ada", 1), inventory, 100));
  schedule(state, inventory, {}, {}, 100);
  return {};
}

/// The error of a change; empty when the pool can be changed.
std::string change_pool(const std::string& folder) {
  auto pool = Pool::open(folder);
  if (!pool) return pool.error().message;
  const auto outcome = pool->change(add_job);
  return outcome ? "" : outcome.error().message;
}

std::string bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// A pool of three running jobs whose state is all in the database file, none of it in the log.
void make_settled_pool(const std::string& folder) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(change_pool(folder), "");
  auto database = sqlite::Database::open(folder + "/pool.db");
  ASSERT_TRUE(database);
  ASSERT_TRUE((*database)->execute("PRAGMA wal_checkpoint(TRUNCATE)"));
}

void execute(const std::string& folder, const char* statements) {
  auto database = sqlite::Database::open(folder + "/pool.db");
  ASSERT_TRUE(database);
  const auto outcome = (*database)->execute(statements);
  ASSERT_TRUE(outcome) << outcome.error().message;
}

class Faults : public ::testing::Test {
 protected:
  Faults() { install_faulty_vfs(); }
  ~Faults() override { set_on_file_call(nullptr); }

  /// From call number `at` of this kind on, all of them fail.
  static void fail_from(int at, FileCall kind, int code) {
    set_on_file_call([=, calls = 0](FileCall call) mutable {
      if (call != kind) return SQLITE_OK;
      return ++calls >= at ? code : SQLITE_OK;
    });
  }
};

TEST_F(Faults, AFullDiskRefusesAChangeWhole) {
  const TestFolder folder;
  ASSERT_EQ(change_pool(folder.path()), "");
  auto pool = Pool::open(folder.path());
  ASSERT_TRUE(pool);
  int refused = 0;
  for (int at = 1;; ++at) {
    const auto before = pool->read();
    ASSERT_TRUE(before) << before.error().message;
    fail_from(at, FileCall::write, SQLITE_FULL);
    const auto outcome = pool->change(add_job);
    set_on_file_call(nullptr);
    if (outcome) break;
    ++refused;
    EXPECT_EQ(outcome.error().message,
              "cannot write " + folder.path("pool.db") + ": the disk is full; nothing was changed");
    EXPECT_EQ(*pool->read(), *before) << "write " << at;
  }
  EXPECT_GT(refused, 2);
  EXPECT_EQ(pool->read()->jobs.size(), 2U);
}

TEST_F(Faults, WhatMayPassCanBeTriedAgain) {
  const TestFolder folder;
  ASSERT_EQ(change_pool(folder.path()), "");
  auto pool = Pool::open(folder.path());
  ASSERT_TRUE(pool);
  for (const int code : {SQLITE_FULL, SQLITE_IOERR_WRITE}) {
    fail_from(1, FileCall::write, code);
    EXPECT_FALSE(pool->change(add_job)) << code;
    set_on_file_call(nullptr);
    EXPECT_TRUE(pool->may_try_again()) << code;
    EXPECT_TRUE(pool->read()) << code;
    EXPECT_FALSE(pool->may_try_again()) << "the last call went well";
  }
  EXPECT_FALSE(pool->change([](PoolState&) -> Result<void> { return failed("no"); }));
  EXPECT_FALSE(pool->may_try_again()) << "the transition refused";
  execute(folder.path(), "UPDATE job SET record = '{}'");
  EXPECT_FALSE(pool->read());
  EXPECT_FALSE(pool->may_try_again()) << "a damaged record stays so";
}

TEST(PoolFailure, AChangeKeepsOthersFromWritingFromItsBegin) {
  const TestFolder folder;
  auto pool = Pool::open(folder.path());
  ASSERT_TRUE(pool);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(folder.path("pool.db").c_str(), &other), SQLITE_OK);
  const auto try_to_write = [&] { return sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr); };
  ASSERT_TRUE(pool->change([&](PoolState& state) -> Result<void> {
    EXPECT_EQ(try_to_write(), SQLITE_BUSY);
    return add_job(state);
  }));
  EXPECT_EQ(try_to_write(), SQLITE_OK);
  sqlite3_close(other);
}

TEST_F(Faults, AnUnreliableDiskRefusesAChangeWhole) {
  const TestFolder folder;
  ASSERT_EQ(change_pool(folder.path()), "");
  auto pool = Pool::open(folder.path());
  ASSERT_TRUE(pool);
  for (int at = 1;; ++at) {
    fail_from(at, FileCall::write, SQLITE_IOERR_WRITE);
    const auto outcome = pool->change(add_job);
    set_on_file_call(nullptr);
    if (outcome) break;
    EXPECT_THAT(outcome.error().message,
                AllOf(StartsWith("cannot read or write " + folder.path("pool.db")), EndsWith("nothing was changed")));
    EXPECT_EQ(pool->read()->jobs.size(), 1U) << "write " << at;
  }
  EXPECT_EQ(pool->read()->jobs.size(), 2U);
}

TEST_F(Faults, ADiskThatFillsWhileTheLogIsMovedLosesNothing) {
  const TestFolder folder;
  ASSERT_EQ(change_pool(folder.path()), "");
  auto pool = Pool::open(folder.path());
  ASSERT_TRUE(pool);
  fail_from(1, FileCall::sync, SQLITE_IOERR_FSYNC);  // only moving the log into the database syncs
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(pool->change([i](PoolState& state) -> Result<void> {
      state.jobs.front().name = std::to_string(i);
      return {};
    }));
  set_on_file_call(nullptr);
  EXPECT_EQ(pool->read()->jobs.front().name, "99");
  EXPECT_EQ(change_pool(folder.path()), "");
}

TEST(PoolFailure, SaysThatATinyDiskIsFull) {
  const TestFolder folder;
  const auto child = process::with_own_mounts([&]() -> std::string {
    if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=160k") != 0) return "skip: no tmpfs";
    auto pool = Pool::open(folder.path());
    if (!pool) return pool.error().message;
    for (size_t jobs = 0; jobs < 1000; ++jobs) {
      const auto outcome = pool->change(add_job);
      const auto state = pool->read();
      if (!state) return "cannot read: " + state.error().message;
      if (!outcome) return state->jobs.size() == jobs ? outcome.error().message : "the change was half made";
      if (state->jobs.size() != jobs + 1) return "a job was lost";
    }
    return "never full";
  });
  if (child.said.starts_with("skip")) GTEST_SKIP() << child.said;
  EXPECT_EQ(child.said, "cannot write " + folder.path("pool.db") + ": the disk is full; nothing was changed");
}

TEST(PoolFailure, SaysThatThereIsNoRoomForANewPool) {
  const TestFolder folder;
  const auto child = process::with_own_mounts([&]() -> std::string {
    if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=8k") != 0) return "skip: no tmpfs";
    const std::string said = change_pool(folder.path());
    return fs::exists(folder.path("pool.db")) ? "a broken pool is left" : said;
  });
  if (child.said.starts_with("skip")) GTEST_SKIP() << child.said;
  EXPECT_EQ(child.said, "cannot write " + folder.path("pool.db") + ": No space left on device");
}

TEST(PoolFailure, SaysThatAFolderIsReadOnly) {
  const TestFolder folder;
  ASSERT_EQ(change_pool(folder.path()), "");
  const auto child = process::with_own_mounts([&]() -> std::string {
    const char* path = folder.path().c_str();
    if (::mount(path, path, nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(nullptr, path, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return "skip: no bind mount";
    const std::string of_old = change_pool(folder.path());
    return of_old + "\n" + change_pool(folder.path("new"));
  });
  if (child.said.starts_with("skip")) GTEST_SKIP() << child.said;
  EXPECT_EQ(child.said, "cannot write " + folder.path("pool.db") + ": Read-only file system\n" +
                            "cannot make the folder " + folder.path("new") + ": Read-only file system");
}

TEST(PoolFailure, SaysThatAFolderIsSomebodyElses) {
  const TestFolder folder;
  ASSERT_EQ(change_pool(folder.path()), "");
  const auto child = process::in_child([&](const process::Say&) -> std::string {
    if (::setgid(12345) != 0 || ::setuid(12345) != 0) return "skip: the user cannot be changed";
    return change_pool(folder.path());
  });
  if (child.said.starts_with("skip")) GTEST_SKIP() << child.said;
  EXPECT_EQ(child.said, "cannot write " + folder.path("pool.db") + ": Permission denied");
}

TEST(PoolFailure, SaysThatAFileStandsInPlaceOfTheFolder) {
  const TestFolder folder;
  write_bytes(folder.path("file"), "x");
  EXPECT_THAT(change_pool(folder.path("file")), HasSubstr("Not a directory"));
}

TEST(PoolFailure, SaysThatTheFileIsNoDatabase) {
  const TestFolder folder;
  make_settled_pool(folder.path());
  std::string bytes = bytes_of(folder.path("pool.db"));
  bytes.replace(0, 100, std::string(100, 'x'));
  write_bytes(folder.path("pool.db"), bytes);
  EXPECT_THAT(change_pool(folder.path()),
              AllOf(StartsWith(folder.path("pool.db") + " is damaged"), HasSubstr("not a database")));
  EXPECT_EQ(bytes_of(folder.path("pool.db")), bytes) << "it must stay as it is";
}

TEST(PoolFailure, SaysThatTheFileIsCutShort) {
  const TestFolder folder;
  make_settled_pool(folder.path());
  const std::string bytes = bytes_of(folder.path("pool.db"));
  for (size_t size = 4096; size < bytes.size(); size += 4096) {
    write_bytes(folder.path("pool.db"), bytes.substr(0, size));
    EXPECT_THAT(change_pool(folder.path()), StartsWith(folder.path("pool.db") + " is damaged")) << size;
  }
  for (const size_t size : {0, 50, 1000}) {
    write_bytes(folder.path("pool.db"), bytes.substr(0, size));
    EXPECT_THAT(change_pool(folder.path()), StartsWith(folder.path("pool.db") + " is ")) << size;
  }
  write_bytes(folder.path("pool.db"), bytes);
  EXPECT_EQ(change_pool(folder.path()), "");
}

TEST(PoolFailure, SaysThatAnotherVersionMadeIt) {
  const TestFolder folder;
  make_settled_pool(folder.path());
  execute(folder.path(), "PRAGMA user_version = 7");
  EXPECT_THAT(change_pool(folder.path()), AllOf(HasSubstr("a pool of format 7"), HasSubstr("this remuda is too old")));
  execute(folder.path(), "PRAGMA application_id = 1");
  EXPECT_THAT(change_pool(folder.path()), HasSubstr("no pool of remuda"));
}

TEST(PoolFailure, RefusesAStateThatBreaksTheRules) {
  const auto damage = [](const char* statements) {
    const TestFolder folder;
    make_settled_pool(folder.path());
    execute(folder.path(), statements);
    return change_pool(folder.path());
  };
  EXPECT_THAT(damage("UPDATE lease SET device = 'gpu:0'"), HasSubstr("gpu:0 has two owners"));
  EXPECT_THAT(damage("DELETE FROM lease"), HasSubstr("job 1 is running and holds 0 devices, not 1"));
  EXPECT_THAT(damage("UPDATE lease SET job = 77 WHERE job = 1"), HasSubstr("is damaged"));
  EXPECT_THAT(damage("UPDATE job SET record = '{' WHERE id = 2"), HasSubstr("is damaged: job 2"));
  EXPECT_THAT(damage("UPDATE job SET record = '{}' WHERE id = 2"), HasSubstr("job 2 lacks 'id'"));
  EXPECT_THAT(damage("UPDATE job SET record = (SELECT record FROM job WHERE id = 1) WHERE id = 2"),
              HasSubstr("job 2 calls itself 1"));
  EXPECT_THAT(damage("UPDATE job SET record = json_set(record, '$.name', char(27) || '[31m') WHERE id = 2"),
              HasSubstr("control characters"));
  EXPECT_THAT(damage("INSERT INTO usage VALUES ('eve', -1, 0)"), HasSubstr("'eve' has used devices for -1 seconds"));
  EXPECT_THAT(damage("UPDATE lease SET since_s = 9e999"), HasSubstr("is damaged: gpu:0 is held by job 1 since inf"));
  EXPECT_THAT(damage("UPDATE sqlite_sequence SET seq = 9223372036854775806"), HasSubstr("is damaged: its last job"));
  EXPECT_THAT(damage("DROP TABLE lease"), HasSubstr("is damaged: it lacks tables"));
  EXPECT_THAT(
      damage("DROP TABLE usage; CREATE VIEW usage AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
             "SELECT '' || i AS user, 1.0 AS device_seconds, 1.0 AS at_s FROM n"),
      HasSubstr("is damaged: it has triggers or views"))
      << "it would never end to be read";
}

TEST(PoolFailure, RefusesARecordThatIsNestedTooDeep) {
  const TestFolder folder;
  make_settled_pool(folder.path());
  const std::string nested = std::string(100'000, '[') + std::string(100'000, ']');
  execute(folder.path(),
          ("UPDATE job SET record = substr(record, 1, length(record) - 1) || ',\"new\":" + nested + "}' WHERE id = 1")
              .c_str());
  EXPECT_THAT(change_pool(folder.path()), HasSubstr("is damaged: job 1 is nested too deep"));
}

TEST(PoolFailure, DoesNotWriteIntoAFileThatWasMovedAway) {
  const TestFolder folder;
  auto pool = Pool::open(folder.path());
  ASSERT_TRUE(pool);
  fs::rename(folder.path("pool.db"), folder.path("old.db"));
  const auto outcome = pool->change(add_job);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("is not the file that was opened"));
}

}  // namespace
}  // namespace remuda::pool
