#include "agent/revival.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "process/testing/child_output.h"

namespace remuda::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

pool::Job job_of(int64_t id) { return {.id = id, .user = "ada"}; }

class RevivalTest : public testing::Test {
 protected:
  Result<process::ChildProcess> start(const pool::Job& job) {
    begun_.push_back(job.id);
    if (script_.empty()) return failed("there is no such program");
    auto child = process::ChildProcess::spawn({.argv = {"/bin/sh", "-c", script_}});
    if (child) process::await(child->pidfd());
    return child;
  }

  std::string script_ = "exit 0";
  std::vector<int64_t> begun_;
  Revival revival_{[this](const pool::Job& job) { return start(job); }};
};

TEST_F(RevivalTest, StartsAJobsKeeperOnce) {
  EXPECT_EQ(revival_.next_s(), kNever_s);
  revival_.add(job_of(7));
  EXPECT_LE(revival_.next_s(), 0);
  EXPECT_THAT(revival_.step(1), IsEmpty());
  revival_.remove(7);
  for (double now_s = 1; now_s < 100; ++now_s) EXPECT_THAT(revival_.step(now_s), IsEmpty());
  EXPECT_THAT(begun_, ElementsAre(7));
  EXPECT_EQ(revival_.next_s(), kNever_s);
}

TEST_F(RevivalTest, StartsAFewAtATime) {
  for (int64_t job = 1; job <= 10; ++job) revival_.add(job_of(job));
  revival_.step(1);
  EXPECT_THAT(begun_, SizeIs(4));
  EXPECT_LE(revival_.next_s(), 2);
  for (double now_s = 2; now_s < 6; ++now_s) revival_.step(now_s);
  EXPECT_THAT(begun_, SizeIs(10));
}

TEST_F(RevivalTest, TriesAgainLaterAndGivesUpWithTheReason) {
  script_ = "echo 'remuda: there is no folder /home/ada' >&2; exit 2";
  revival_.add(job_of(7));
  std::vector<Revival::GivenUp> given_up;
  double now_s = 1;
  for (; given_up.empty() && now_s < 1000; ++now_s) given_up = revival_.step(now_s);
  ASSERT_THAT(given_up, SizeIs(1));
  EXPECT_EQ(given_up[0].job, 7);
  EXPECT_EQ(given_up[0].why, "its process was lost, and cannot be started again: there is no folder /home/ada");
  EXPECT_THAT(begun_, SizeIs(10));
  EXPECT_GT(now_s, 200) << "it may take a while until a folder is there";
  EXPECT_EQ(revival_.next_s(), kNever_s);
}

TEST_F(RevivalTest, GivesUpWhereNothingCanBeStarted) {
  script_.clear();
  revival_.add(job_of(7));
  std::vector<Revival::GivenUp> given_up;
  for (double now_s = 1; given_up.empty() && now_s < 1000; ++now_s) given_up = revival_.step(now_s);
  ASSERT_THAT(given_up, SizeIs(1));
  EXPECT_THAT(given_up[0].why, testing::HasSubstr("there is no such program"));
}

TEST_F(RevivalTest, AKeeperThatIsLostAtOnceIsNotStartedAsOften) {
  for (double now_s = 1; now_s < 60; ++now_s) {
    revival_.add(job_of(7));
    revival_.step(now_s);
    revival_.remove(7);
  }
  EXPECT_THAT(begun_, SizeIs(2));
}

}  // namespace
}  // namespace remuda::agent
