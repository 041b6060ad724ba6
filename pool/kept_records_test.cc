#include "pool/kept_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::pool {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kAda = 1000, kEve = 1001, kBob = 1002;

bool nobody_waits(int64_t) { return false; }

TEST(KeptRecords, OfEachOwnerAreBoundedByThemselves) {
  KeptRecords kept({.jobs_of_owner = 3, .jobs = 100, .bytes_of_owner = 100, .bytes = 1000});
  kept.add(1, kAda, 10);
  for (int64_t job = 2; job < 8; ++job) kept.add(job, kEve, 10);
  EXPECT_THAT(kept.take_excess(nobody_waits), ElementsAre(2, 3, 4)) << "job 1 is older, and another's";
  EXPECT_THAT(kept.take_excess(nobody_waits), IsEmpty());
  kept.add(8, kEve, 85);
  EXPECT_THAT(kept.take_excess(nobody_waits), ElementsAre(5, 6)) << "they have too many bytes";
}

TEST(KeptRecords, OfAllGoFromThoseWhoHaveMost) {
  KeptRecords kept({.jobs_of_owner = 100, .jobs = 10, .bytes_of_owner = 1000, .bytes = 100});
  for (int64_t job = 1; job <= 3; ++job) kept.add(job, kAda, 1);
  for (int64_t job = 4; job <= 9; ++job) kept.add(job, kEve, 1);
  for (int64_t job = 10; job <= 13; ++job) kept.add(job, kBob, 1);
  EXPECT_THAT(kept.take_excess(nobody_waits), ElementsAre(4, 5, 6, 10)) << "three are everybody's";
  kept.add(14, kAda, 95);
  kept.add(15, kBob, 5);
  EXPECT_THAT(kept.take_excess(nobody_waits), ElementsAre(1, 2, 3, 14, 11)) << "of bytes, too";
}

TEST(KeptRecords, ThatOthersWaitForStay) {
  KeptRecords kept({.jobs_of_owner = 1, .jobs = 100, .bytes_of_owner = 1000, .bytes = 1000});
  for (int64_t job = 1; job <= 3; ++job) kept.add(job, kAda, 1);
  EXPECT_THAT(kept.take_excess([](int64_t job) { return job == 1; }), ElementsAre(2, 3));
  EXPECT_THAT(kept.take_excess(nobody_waits), IsEmpty());
}

}  // namespace
}  // namespace remuda::pool
