#include "agent/revival.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"
#include "process/testing/child_output.h"
#include "process/user_name.h"

namespace remuda::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

pool::Job job_of(int64_t id, int uid = 1000) { return {.id = id, .user = "ada", .uid = uid}; }

class RevivalTest : public testing::Test {
 protected:
  Result<process::ChildProcess> start(const pool::Job& job) {
    begun_.push_back(job.id);
    if (script_.empty()) return failed("there is no such program");
    auto child = process::ChildProcess::spawn({.argv = {"/bin/sh", "-c", script_}});
    if (child && ends_) process::await(child->pidfd());
    return child;
  }
  std::vector<Revival::GivenUp> give_up(double& now_s) {
    std::vector<Revival::GivenUp> given_up;
    for (; given_up.empty() && now_s < 2000; ++now_s) given_up = revival_.step(now_s);
    return given_up;
  }

  std::string script_ = "exit 0";
  bool ends_ = true;
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

TEST_F(RevivalTest, StartsOneOfAUserUntilThatHasWorked) {
  for (int64_t job = 1; job <= 3; ++job) revival_.add(job_of(job));
  revival_.add(job_of(4, 1001));
  revival_.step(1);
  EXPECT_THAT(begun_, ElementsAre(1, 4));
  EXPECT_LE(revival_.next_s(), 2);
  for (const int64_t job : {1, 4}) revival_.remove(job);
  revival_.step(2);
  EXPECT_THAT(begun_, ElementsAre(1, 4, 2, 3));
}

TEST_F(RevivalTest, StartsMoreOfAUserAsTheyWork) {
  ends_ = false;
  script_ = "exec sleep 1000";
  for (int64_t job = 1; job <= 20; ++job) revival_.add(job_of(job));
  revival_.step(1);
  for (const int64_t worked : {1, 2, 3, 4}) {
    revival_.remove(worked);
    revival_.step(1 + 0.1 * static_cast<double>(worked));
  }
  EXPECT_THAT(begun_, ElementsAre(1, 2, 3, 4, 5, 6, 7)) << "1, 2, and then 3 at once";
  revival_.add(job_of(21, 1001));
  revival_.step(1.5);
  EXPECT_EQ(begun_.back(), 21) << "one place is left for others";
  for (const int64_t worked : {5, 6, 7, 21}) revival_.remove(worked);
  for (int64_t job = 22; job <= 24; ++job) revival_.add(job_of(job, 1001));
  begun_.clear();
  revival_.step(1.6);
  EXPECT_THAT(begun_, ElementsAre(8, 22, 9, 23)) << "in turns";
}

TEST_F(RevivalTest, StartsOneOfAUserAgainOnceOneHasFailed) {
  for (int64_t job = 1; job <= 9; ++job) revival_.add(job_of(job));
  revival_.step(1);
  revival_.remove(1);
  revival_.step(2);
  EXPECT_THAT(begun_, ElementsAre(1, 2, 3));
  revival_.step(3);
  EXPECT_THAT(revival_.take_failed(), ElementsAre(2, 3));
  EXPECT_THAT(begun_, ElementsAre(1, 2, 3, 4));
}

TEST_F(RevivalTest, StartsTheNextOfAUserOnceTheOneBeforeHasAKeeper) {
  ends_ = false;
  script_ = "exec sleep 1000";
  for (int64_t job = 1; job <= 3; ++job) revival_.add(job_of(job));
  revival_.step(1);
  revival_.step(1.2);
  EXPECT_THAT(begun_, ElementsAre(1));
  revival_.remove(1);
  EXPECT_LE(revival_.next_s(), 1.2);
  EXPECT_TRUE(revival_.has_tried(1, 1.2));
  EXPECT_FALSE(revival_.has_tried(2, 1.2));
  revival_.step(1.2);
  EXPECT_THAT(begun_, ElementsAre(1, 2, 3)) << "what has started it may take a moment to end";
  EXPECT_THAT(revival_.take_failed(), IsEmpty());
  EXPECT_FALSE(revival_.has_tried(1, 40));
}

TEST_F(RevivalTest, GivesUsersTurns) {
  ends_ = false;
  script_ = "exec sleep 1000";
  for (int64_t job = 1; job <= 20; ++job) revival_.add(job_of(job, 1000 + static_cast<int>(job) % 10));
  revival_.step(1);
  EXPECT_THAT(begun_, ElementsAre(10, 1, 2, 3)) << "a few at once";
  revival_.step(10);
  EXPECT_THAT(begun_, SizeIs(4));
  revival_.step(11);
  EXPECT_THAT(begun_, ElementsAre(10, 1, 2, 3, 4, 5, 6, 7)) << "those before took too long";
  revival_.step(21);
  EXPECT_THAT(begun_, ElementsAre(10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 11));
}

TEST_F(RevivalTest, TriesAgainLaterAndGivesUpWithTheReason) {
  script_ = "echo 'remuda: there is no folder /home/ada' >&2; exit 2";
  revival_.add(job_of(7));
  double now_s = 1;
  std::vector<Revival::GivenUp> given_up = give_up(now_s);
  ASSERT_THAT(given_up, SizeIs(1));
  EXPECT_EQ(given_up[0].job, 7);
  EXPECT_EQ(given_up[0].why, "the process that keeps it cannot be started: there is no folder /home/ada");
  EXPECT_THAT(begun_, SizeIs(10));
  EXPECT_THAT(revival_.take_failed(), SizeIs(10));
  EXPECT_THAT(revival_.take_failed(), IsEmpty());
  EXPECT_GT(now_s, 200) << "it may take a while until a folder is there";
  given_up = give_up(now_s);
  EXPECT_THAT(given_up, SizeIs(1)) << "the pool could not be written, so the job has not ended";
  EXPECT_THAT(begun_, SizeIs(10));
  revival_.remove(7);
  EXPECT_THAT(give_up(now_s), IsEmpty());
  EXPECT_EQ(revival_.next_s(), kNever_s);
}

TEST_F(RevivalTest, AKeeperThatCameEndsTheCountOfFailures) {
  script_ = "exit 2";
  revival_.add(job_of(7));
  double now_s = 1;
  for (; begun_.size() < 9; ++now_s) revival_.step(now_s);
  revival_.step(now_s);
  revival_.remove(7);
  revival_.add(job_of(7));  // that keeper is lost, too
  begun_.clear();
  EXPECT_THAT(give_up(now_s), SizeIs(1));
  EXPECT_THAT(begun_, SizeIs(10));
}

TEST_F(RevivalTest, IsNotHeldUpByOneThatWritesWithoutEnd) {
  ends_ = false;
  script_ = "exec yes";
  revival_.add(job_of(7));
  for (double now_s = 1; now_s < 12; ++now_s) EXPECT_THAT(revival_.step(now_s), IsEmpty());
  EXPECT_EQ(revival_.next_s(), 31) << "it took too long";
}

TEST_F(RevivalTest, GivesASlowOneMoreTimeAtEachTry) {
  ends_ = false;
  script_ = "exec sleep 1000";
  revival_.add(job_of(7));
  std::vector<double> begun_s;
  std::vector<Revival::GivenUp> given_up;
  for (double now_s = 1; given_up.empty() && now_s < 2000; ++now_s) {
    given_up = revival_.step(now_s);
    if (begun_.size() > begun_s.size()) begun_s.push_back(now_s);
  }
  ASSERT_THAT(begun_s, SizeIs(10));
  begun_s.resize(6);
  EXPECT_THAT(begun_s, ElementsAre(1, 31, 61, 101, 181, 261)) << "after 10, 20, 40 and 80 s, and 30 at the least";
  ASSERT_THAT(given_up, SizeIs(1));
  EXPECT_THAT(given_up[0].why, HasSubstr("that takes too long"));
}

TEST_F(RevivalTest, ASlowOneMakesRoomForOneThatHasFailedLess) {
  ends_ = false;
  script_ = "exec sleep 1000";
  for (int64_t job = 1; job <= 4; ++job) revival_.add(job_of(job, 1000 + static_cast<int>(job)));
  double now_s = 1;
  for (; now_s < 102; ++now_s) revival_.step(now_s);
  EXPECT_THAT(begun_, SizeIs(16)) << "each for the fourth time, with 80 s";
  revival_.add(job_of(5, 1005));
  for (; now_s < 111; ++now_s) revival_.step(now_s);
  EXPECT_THAT(begun_, SizeIs(16)) << "they have the first 10 s all the same";
  revival_.step(now_s);
  ASSERT_THAT(begun_, SizeIs(17));
  EXPECT_EQ(begun_.back(), 5);
  revival_.remove(5);
  revival_.take_failed();
  for (; now_s < 181; ++now_s) revival_.step(now_s);
  EXPECT_THAT(revival_.take_failed(), IsEmpty()) << "only one had to go";
}

TEST_F(RevivalTest, SlowOnesThatHaveFailedAsOftenLetEachOtherHaveTheirTime) {
  ends_ = false;
  script_ = "exec sleep 1000";
  for (int64_t job = 1; job <= 5; ++job) revival_.add(job_of(job, 1000 + static_cast<int>(job)));
  std::vector<double> begun_s;
  for (double now_s = 1; now_s < 60; ++now_s) {
    revival_.step(now_s);
    if (std::ranges::count(begun_, 5) > static_cast<int>(begun_s.size())) begun_s.push_back(now_s);
  }
  EXPECT_THAT(begun_s, ElementsAre(11, 51)) << "the others have 10 s, and then 20";
}

TEST_F(RevivalTest, GivesUpWhereNothingCanBeStarted) {
  script_.clear();
  revival_.add(job_of(7));
  double now_s = 1;
  const auto given_up = give_up(now_s);
  ASSERT_THAT(given_up, SizeIs(1));
  EXPECT_THAT(given_up[0].why, HasSubstr("there is no such program"));
}

TEST_F(RevivalTest, GivesUpWhereNoKeeperComes) {
  revival_.add(job_of(7));
  double now_s = 1;
  const auto given_up = give_up(now_s);
  ASSERT_THAT(given_up, SizeIs(1));
  EXPECT_THAT(given_up[0].why, HasSubstr("the program that starts it ended, and no process keeps the job"));
}

TEST_F(RevivalTest, AKeeperThatCameAndWasLostAgainWasStarted) {
  double now_s = 1;
  for (int i = 0; i < 20; ++i, now_s += 31) {
    revival_.add(job_of(7));
    EXPECT_THAT(revival_.step(now_s), IsEmpty());
    revival_.remove(7);
    revival_.add(job_of(7));
    EXPECT_THAT(revival_.step(now_s + 1), IsEmpty());
  }
  EXPECT_THAT(begun_, SizeIs(20));
}

TEST_F(RevivalTest, AKeeperThatIsLostAtOnceIsNotStartedAsOften) {
  for (double now_s = 1; now_s < 60; ++now_s) {
    revival_.add(job_of(7));
    revival_.step(now_s);
    revival_.remove(7);
  }
  EXPECT_THAT(begun_, SizeIs(2));
}

/// As its own user; of others, tests/agent_revival_test.py tells.
TEST(Reviver, GivesNothingOfItsOwnEnvironment) {
  const ScratchFolder folder;
  const std::string program = folder.write("remuda", "#!/bin/sh\necho \"$@\"\nenv\n");
  std::filesystem::permissions(program, std::filesystem::perms(0755));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  ::setenv("REMUDA_TEST_SECRET", "secret", 1);
  const Revival::Start start = reviver_at("/run/a.sock", {"--machine", "m.json"}, program);
  pool::Job job = job_of(7, static_cast<int>(::geteuid()));
  job.user = process::user_name(job.uid);
  auto child = start(job);
  ASSERT_TRUE(child) << child.error().message;
  const std::string said = process::read_to_end(child->output());
  ::unsetenv("REMUDA_TEST_SECRET");
  EXPECT_THAT(said, StartsWith("rerun 7 --machine m.json\n"));
  EXPECT_THAT(said, HasSubstr("\nREMUDA_AGENT=/run/a.sock\n"));
  EXPECT_THAT(said, HasSubstr("\nPATH=/usr/local/sbin:"));
  EXPECT_THAT(said, HasSubstr("\nHOME=/"));
  EXPECT_THAT(said, Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace remuda::agent
