// Who may cancel what, and which reason a cancelled job keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pool/testing/transitions.h"

namespace remuda::pool {
namespace {

using ::testing::HasSubstr;

class Cancel : public TransitionsTest {};

TEST_F(Cancel, EndsTheWaitingAndMarksTheRunning) {
  add("ada", 4);
  look();
  add("ada", 1);
  const int ada = job(1).uid;
  ASSERT_TRUE(cancel(state, 1, {ada, "somebody"}, 150));
  EXPECT_TRUE(job(1).cancelled);
  EXPECT_EQ(job(1).state, JobState::running) << "its processes are there still";
  ASSERT_TRUE(cancel(state, 2, {ada, "somebody"}, 150));
  EXPECT_EQ(job(2).state, JobState::ended);
  EXPECT_EQ(job(2).why, "was cancelled while it waited");
  EXPECT_FALSE(succeeded(job(2)));
}

TEST_F(Cancel, SaysWhichOtherUserHasCancelled) {
  add("ada", 4);
  look();
  add("ada", 1);
  ASSERT_NE(job(1).uid, 0);
  ASSERT_TRUE(cancel(state, 1, {0, "root"}, 150));
  ASSERT_TRUE(cancel(state, 2, {0, "root"}, 150));
  EXPECT_EQ(job(1).why, "was cancelled by root");
  EXPECT_EQ(job(2).why, "was cancelled by root while it waited");
  end(state, 1, {.exit_status = 143, .why = "was cancelled"}, policy, 160);
  EXPECT_EQ(job(1).why, "was cancelled by root");
}

TEST_F(Cancel, TheFirstWhoCancelsStaysTheReason) {
  add("ada", 2);
  add("bob", 2);
  look();
  ASSERT_TRUE(cancel(state, 1, {0, "root"}, 150));
  ASSERT_TRUE(cancel(state, 1, {job(1).uid, "somebody"}, 151));
  EXPECT_EQ(job(1).why, "was cancelled by root");
  ASSERT_TRUE(cancel(state, 2, {job(2).uid, "somebody"}, 150));
  ASSERT_TRUE(cancel(state, 2, {0, "root"}, 151));
  EXPECT_EQ(job(2).why, "");
  Job told = test_job("ada", 1);
  told.outlives_keeper = true;
  told.mail = "ada@box";
  lose_keeper(state, add(told));
  ASSERT_TRUE(cancel(state, 3, {0, "root"}, 152));
  ASSERT_TRUE(cancel(state, 3, {job(3).uid, "somebody"}, 153));
  EXPECT_EQ(job(3).why, "was cancelled by root while it waited");
  end(state, 3, {.exit_status = 125, .why = job(3).why}, policy, 160);
  EXPECT_EQ(job(3).why, "was cancelled by root while it waited");
}

TEST_F(Cancel, WhoHasCancelledStaysInALongerReason) {
  add("ada", 2);
  add("bob", 2);
  look();
  ASSERT_TRUE(cancel(state, 1, {0, "root"}, 150));
  ASSERT_TRUE(cancel(state, 2, {0, "root"}, 150));
  end(state, 1, {.exit_status = 143, .why = "was cancelled; the kernel ended 2 of its processes"}, policy, 160);
  EXPECT_EQ(job(1).why, "was cancelled by root; the kernel ended 2 of its processes");
  end(state, 2, {.exit_status = 1, .why = "exit status 1"}, policy, 160);
  EXPECT_EQ(job(2).why, "exit status 1");
}

TEST_F(Cancel, RefusesOthersAndWhatHasEnded) {
  add("ada", 1);
  EXPECT_EQ(cancel(state, 9, {0, "root"}, 150).error().message, "there is no job 9");
  EXPECT_EQ(cancel(state, 1, {job(1).uid + 1, "somebody"}, 150).error().message, "job 1 belongs to ada");
  end(state, 1, {}, policy, 150);
  EXPECT_EQ(cancel(state, 1, {0, "root"}, 150).error().message, "job 1 has ended already");
}

TEST_F(Cancel, EndsAllJobsOfAnArray) {
  const int64_t array = make_array(state, add("ada", 3));
  Job one = test_job("ada", 3);
  one.array = array;
  const int64_t running = add(one), waiting = add(one), other = add("ada", 3);
  look();
  EXPECT_EQ(cancel(state, array, {job(array).uid + 1, "somebody"}, 110).error().message,
            "job " + std::to_string(array) + " belongs to ada");
  ASSERT_TRUE(cancel(state, array, {0, "root"}, 110));
  EXPECT_EQ(job(array).state, JobState::ended);
  EXPECT_EQ(job(waiting).state, JobState::ended);
  EXPECT_EQ(job(running).state, JobState::running);
  EXPECT_TRUE(job(running).cancelled);
  EXPECT_FALSE(job(other).cancelled);
  EXPECT_THAT(refusal(one), HasSubstr("has ended"));
}

}  // namespace
}  // namespace remuda::pool
