// Backfill: who may have devices meanwhile that are kept for another.
#include <gmock/gmock.h>

#include "pool/testing/schedule.h"

namespace remuda::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Backfill : public ScheduleTest {
 protected:
  int64_t add_limited(const std::string& user, int count, double limit_s, double now_s) {
    Job job = test_job(user, count);
    job.time_limit_s = limit_s;
    return add(job, now_s);
  }
  /// Job 1 has gpu:0 and gpu:1 until 5100, job 2 wants all four; its patience is over at 1000.
  void begin() {
    add_limited("ada", 2, 5000, 100);
    look(100);
    add("bob", 4, 100);
    look(100);
  }
};

TEST_F(Backfill, LetsAJobPassThatEndsInTime) {
  begin();
  const int64_t fits = add_limited("eve", 2, 3000, 1000), late = add_limited("eve", 2, 4101, 1000);
  EXPECT_THAT(look(1000), ElementsAre(fits));
  EXPECT_EQ(job(fits).passed, 2);
  EXPECT_THAT(job(2).why,
              HasSubstr("; job 3, which ends before it can start, passes it; what comes free is kept for it"));
  EXPECT_THAT(job(late).why, Not(HasSubstr("pass"))) << "nothing is free any more";
  const PoolState before = state;
  EXPECT_THAT(look(2000), IsEmpty());
  EXPECT_EQ(state, before);
  finish(fits, 4000);
  finish(1, 5100);
  EXPECT_THAT(look(5100), ElementsAre(2));
}

TEST_F(Backfill, WhoHasPassedPassesNobodyOnceItWaitsAgain) {
  begin();
  const int64_t fits = add_limited("eve", 2, 3000, 1000);
  EXPECT_THAT(look(1000), ElementsAre(fits));
  ASSERT_EQ(job(fits).passed, 2);
  requeue(state, fits, policy, 2000);
  EXPECT_EQ(job(fits).passed, 0);
}

TEST_F(Backfill, SaysWhatWouldLetAJobPass) {
  begin();
  const int64_t late = add_limited("eve", 2, 4101, 1000), endless = add("eve", 1, 1000);
  EXPECT_THAT(look(1000), IsEmpty());
  EXPECT_THAT(job(late).why, HasSubstr("; by its time limit it would not end before job 2 can start"));
  EXPECT_THAT(job(endless).why, HasSubstr("; with a time limit it could pass job 2, if it ends before that can start"));
  const PoolState before = state;
  look(9000);
  EXPECT_EQ(state, before) << "job 1 takes longer than it said";
}

TEST_F(Backfill, CountsTheGraceTime) {
  begin();
  Job job = test_job("eve", 1);
  job.time_limit_s = 4000;
  job.grace_s = 101;
  add(job, 1000);
  EXPECT_THAT(look(1000), IsEmpty());
  state.find(3)->grace_s = 100;
  EXPECT_THAT(look(1000), ElementsAre(3)) << "it ends when job 2 can start";
}

TEST_F(Backfill, PassesNobodyWhoseStartIsNotKnown) {
  add("ada", 2, 100);
  look(100);
  add("bob", 4, 100);
  add_limited("eve", 1, 10, 1000);
  EXPECT_THAT(look(1000), IsEmpty());
  EXPECT_THAT(job(3).why, Not(HasSubstr("pass")));
}

TEST_F(Backfill, CanBeTurnedOff) {
  policy.backfill = false;
  begin();
  add_limited("eve", 2, 10, 1000);
  EXPECT_THAT(look(1000), IsEmpty());
}

}  // namespace
}  // namespace remuda::pool
