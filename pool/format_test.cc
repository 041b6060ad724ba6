#include "pool/format.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pool/pool.h"
#include "pool/store.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::array<const char*, 2> kLater = {"ALTER TABLE lease ADD COLUMN note TEXT NOT NULL DEFAULT ''",
                                               "CREATE TABLE more (id INTEGER PRIMARY KEY) STRICT"};

std::string error_of(const Result<void>& outcome) { return outcome ? "" : outcome.error().message; }

class Format : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Pool::open(folder_.path()));
    auto database = sqlite::Database::open(path_);
    ASSERT_TRUE(database);
    database_ = std::move(*database);
  }
  int64_t number() { return database_->integer("PRAGMA user_version").value_or(-1); }
  void set(int64_t number) {
    ASSERT_TRUE(database_->execute(("PRAGMA user_version = " + std::to_string(number)).c_str()));
  }

  TestFolder folder_;
  const std::string path_ = folder_.path("pool.db");
  std::unique_ptr<sqlite::Database> database_;
};

TEST_F(Format, AnOlderPoolIsBroughtForwardStepByStep) {
  set(1);
  EXPECT_EQ(error_of(migrate(*database_, path_, Migrations(kLater).first(1))), "");
  EXPECT_EQ(number(), 2);
  EXPECT_EQ(error_of(migrate(*database_, path_, kLater)), "");
  EXPECT_EQ(number(), 3);
  EXPECT_TRUE(database_->execute("INSERT INTO more VALUES (1); SELECT note FROM lease"));
  EXPECT_EQ(error_of(migrate(*database_, path_, kLater)), "") << "once is enough";
}

TEST_F(Format, AStepThatFailsChangesNothing) {
  set(1);
  constexpr std::array<const char*, 2> kBroken = {kLater[0], "ALTER TABLE nowhere ADD COLUMN x"};
  EXPECT_NE(error_of(migrate(*database_, path_, kBroken)), "");
  EXPECT_EQ(number(), 1);
  EXPECT_FALSE(database_->execute("SELECT note FROM lease"));
}

TEST_F(Format, TheRefusalSaysWhichSideIsTooOld) {
  set(newest_format(migrations()) + 6);
  EXPECT_THAT(error_of(migrate(*database_, path_, migrations())), HasSubstr("this remuda is too old"));
  set(0);
  EXPECT_THAT(error_of(migrate(*database_, path_, migrations())), HasSubstr("the pool is too old"));
}

TEST_F(Format, ATriggerIsRefused) {
  ASSERT_TRUE(database_->execute("CREATE TRIGGER t AFTER INSERT ON lease BEGIN DELETE FROM lease; END"));
  EXPECT_THAT(error_of(migrate(*database_, path_, migrations())), HasSubstr("is damaged: it has triggers or views"));
  set(1);
  EXPECT_THAT(error_of(migrate(*database_, path_, migrations())), HasSubstr("is damaged: it has triggers or views"));
}

TEST_F(Format, IsCheckedAtEachChange) {
  auto pool = Pool::open(folder_.path());
  ASSERT_TRUE(pool);
  const auto add = [](PoolState& state) -> Result<void> {
    REMUDA_TRY(submit(state, test_job("ada", 1), test_box(1), 100));
    return {};
  };
  ASSERT_TRUE(pool->change(add));
  set(newest_format(migrations()) + 1);  // as after a newer program has opened it
  EXPECT_THAT(error_of(pool->change(add)), HasSubstr("this remuda is too old"));
  const auto state = pool->read();
  ASSERT_FALSE(state);
  EXPECT_THAT(state.error().message, HasSubstr("this remuda is too old"));
  set(newest_format(migrations()));
  EXPECT_EQ(pool->read()->jobs.size(), 1U);
}

/// A newer program of the same format may add fields to a job's record.
TEST_F(Format, FieldsOfANewerProgramOutliveARewrite) {
  auto pool = Pool::open(folder_.path());
  ASSERT_TRUE(pool);
  ASSERT_TRUE(pool->change([](PoolState& state) -> Result<void> {
    for (int i = 0; i < 2; ++i) REMUDA_TRY(submit(state, test_job("ada", 1), test_box(2), 100));
    return {};
  }));
  ASSERT_TRUE(
      database_->execute("UPDATE job SET record = json_set(record, '$.mood', 'good', '$.request.colour', 'red')"));
  const auto rewrite = [&](int64_t id, const std::string& why) {
    return pool->change(
        [&](PoolState& state) -> Result<void> {
          end(state, id, {.why = why}, {}, 200);
          if (Job* job = state.find(id)) job->why = why;
          return {};
        },
        {id});
  };
  const auto newer = [&](const std::string& why) {
    return "SELECT count(*) FROM job WHERE id = 1 AND json_extract(record, '$.mood') = 'good' AND "
           "json_extract(record, '$.request.colour') = 'red' AND json_extract(record, '$.why') = '" +
           why + "'";
  };
  ASSERT_TRUE(rewrite(1, "first"));
  EXPECT_EQ(database_->integer(newer("first")).value_or(-1), 1);
  auto other = Pool::open(folder_.path());
  ASSERT_TRUE(other->change(
      [](PoolState& state) -> Result<void> {
        state.find(1)->why = "second";
        return {};
      },
      {1}))
      << "of an ended job, by a program that reads it for the first time";
  EXPECT_EQ(database_->integer(newer("second")).value_or(-1), 1);
  const auto dropped = database_->integer("SELECT count(*) FROM job WHERE json_extract(record, '$.exit_status') = 5");
  EXPECT_EQ(dropped.value_or(-1), 0);
  ASSERT_TRUE(pool->change(
      [](PoolState& state) -> Result<void> {
        state.find(1)->why.clear();
        return {};
      },
      {1}));
  EXPECT_EQ(database_->integer("SELECT count(*) FROM job WHERE id = 1 AND json_extract(record, '$.why') IS NULL")
                .value_or(-1),
            1)
      << "a known field that is empty now is no field of a newer program";
}

}  // namespace
}  // namespace remuda::pool
