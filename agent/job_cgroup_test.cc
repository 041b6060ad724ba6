#include "agent/job_cgroup.h"

#include <algorithm>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"
#include "confine/cgroup.h"
#include "process/testing/child_output.h"
#include "process/tree.h"

namespace remuda::agent {
namespace {

constexpr int kUser = 61003;

class JobCgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    made_ = make_job_cgroup(folder_.path(""), 7, kUser, std::nullopt);
    if (made_.folder.empty()) GTEST_SKIP() << "may not make cgroups here: " << made_.obstacle;
  }
  void TearDown() override {
    for (const std::string& cgroup : job_cgroups(folder_.path("")))
      EXPECT_TRUE(confine::remove_cgroup(cgroup, 5)) << cgroup << " is left";
    EXPECT_THAT(job_cgroups(folder_.path("")), testing::IsEmpty());
  }
  bool is_empty(const std::string& cgroup) const {
    for (int i = 0; i < 1000; ++i) {
      kill_members(cgroup, std::nullopt);
      if (confine::cgroup_members(cgroup).empty()) return true;
      ::usleep(10000);
    }
    return false;
  }

  ScratchFolder folder_;
  JobCgroup made_;
};

TEST_F(JobCgroupTest, EachHasANameOfItsOwn) {
  const JobCgroup again = make_job_cgroup(folder_.path(""), 7, kUser, std::nullopt);
  EXPECT_NE(again.folder, made_.folder);
  std::vector<std::string> both = made_.all();
  std::ranges::copy(again.all(), std::back_inserter(both));
  EXPECT_THAT(job_cgroups(folder_.path("")), testing::UnorderedElementsAreArray(both));
  EXPECT_THAT(further_cgroups_of(made_.folder), testing::UnorderedElementsAreArray(made_.further));
}

/// podman asks who owns the cgroup that it is in.
TEST_F(JobCgroupTest, IsItsUsersWhoMovesNoProcessAndMakesFewInIt) {
  struct stat info{};
  if (::stat((made_.folder + "/cgroup.max.descendants").c_str(), &info) != 0 || ::geteuid() != 0)
    GTEST_SKIP() << "not of version 2, or not root's to give";
  ASSERT_EQ(::stat(made_.folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kUser);
  EXPECT_EQ(info.st_mode & 0777, 0755);
  ASSERT_EQ(::stat((made_.folder + "/cgroup.procs").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(::mkdir((made_.folder + "/" + std::to_string(i)).c_str(), 0755), 0);
  EXPECT_NE(::mkdir((made_.folder + "/more").c_str(), 0755), 0);
  EXPECT_EQ(::rmdir((made_.folder + "/15").c_str()), 0);
  take_back(made_.folder);
  ASSERT_EQ(::stat(made_.folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0);
  EXPECT_NE(::mkdir((made_.folder + "/0/below").c_str(), 0755), 0) << "it can be removed now, whoever has those in it";
}

TEST_F(JobCgroupTest, HoldsWhatIsBornInItHoweverItLeavesItsParent) {
  const std::string script = "read go; setsid sh -c '(sleep 1000 & sleep 1000) & exec sleep 1000' & exec sleep 1000";
  int input[2];
  ASSERT_EQ(::pipe2(input, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(input[0], STDIN_FILENO);
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    ::_exit(1);
  }
  const auto keeper = process::process_id(child);
  ASSERT_TRUE(keeper);
  ASSERT_TRUE(confine::move_into(made_.folder, *keeper));
  ASSERT_EQ(::write(input[1], "go\n", 3), 3);
  for (int i = 0; i < 1000 && confine::cgroup_members(made_.folder).size() < 4; ++i) ::usleep(10000);
  EXPECT_EQ(confine::cgroup_members(made_.folder).size(), 4U);
  for (int i = 0; i < 1000 && confine::cgroup_members(made_.folder).size() > 1; ++i) {
    kill_members(made_.folder, keeper);
    ::usleep(10000);
  }
  EXPECT_THAT(confine::cgroup_members(made_.folder), testing::ElementsAre(*keeper));
  EXPECT_TRUE(is_empty(made_.folder));
  ::waitpid(child, nullptr, 0);
  ::close(input[0]);
  ::close(input[1]);
}

TEST_F(JobCgroupTest, AllAreKilledAtOnceWhereTheirNumberDoesNotFall) {
  process::ChildProcess child = process::crowd(250);
  const process::ProcessId keeper = process::process_id(child.pid()).value();
  ASSERT_TRUE(confine::move_into(made_.folder, keeper));
  for (const process::ProcessId& one : process::all_descendants(keeper.pid)) confine::move_into(made_.folder, one);
  kill_members(made_.folder, keeper, Pace::at_once);
  for (int i = 0; i < 1000 && confine::cgroup_members(made_.folder).size() > 1; ++i) ::usleep(10000);
  EXPECT_THAT(confine::cgroup_members(made_.folder), testing::ElementsAre(keeper));
  EXPECT_TRUE(is_empty(made_.folder));
}

TEST_F(JobCgroupTest, AProcessThatHasEndedCannotBeMoved) {
  process::ProcessId gone = process::own_process_id();
  gone.start_ticks += 1;
  EXPECT_FALSE(confine::move_into(made_.folder, gone));
  EXPECT_FALSE(confine::move_into(made_.folder + "/none", process::own_process_id()));
  EXPECT_THAT(confine::cgroup_members(made_.folder), testing::IsEmpty());
}

}  // namespace
}  // namespace remuda::agent
