// Uses real cgroups: where this user may make none, or the tree is not mounted, these tests are skipped.
#include "confine/cgroup.h"

#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/spawn.h"
#include "process/tree.h"

namespace remuda::confine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kPatience_s = 10;

class Cgroup : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    for (const CgroupPlace& place : own_cgroup_places())
      if (place.version == GetParam()) place_ = place;
    if (place_.own.empty()) GTEST_SKIP() << "no tree of this version is mounted here";
    const auto made = JobCgroup::make(place_, name_);
    if (!made) GTEST_SKIP() << made.error().message;
  }
  void TearDown() override { EXPECT_FALSE(std::filesystem::exists(folder())); }

  std::string folder() const { return place_.own + "/" + name_; }
  JobCgroup make() const {
    auto made = JobCgroup::make(place_, name_);
    if (!made) throw std::runtime_error(made.error().message);
    return std::move(*made);
  }

  /// Runs `script` in it, in the background.
  static pid_t begin(const JobCgroup& cgroup, const std::string& script) {
    process::ProcessSpec process{.argv = {"/bin/sh", "-c", script}};
    process.cgroup = cgroup.fd();
    const auto pid = spawn(process);
    if (!pid) throw std::runtime_error(pid.error().sentence);
    return *pid;
  }
  static bool comes_to(const JobCgroup& cgroup, size_t count) {
    const double end_s = monotonic_s() + kPatience_s;
    while (cgroup_members(cgroup.folder()).size() != count)
      if (monotonic_s() > end_s) return false;
    return true;
  }
  static void end(const JobCgroup& cgroup, pid_t child) {
    kill_cgroup(cgroup.folder());
    const auto left = process::kill_all([&] { return cgroup_members(cgroup.folder()); }, kPatience_s,
                                        [&] { ::waitpid(child, nullptr, WNOHANG); });
    EXPECT_THAT(left, IsEmpty());
  }

  const std::string name_ = fmt::format("remuda-test-{}", ::getpid());
  CgroupPlace place_;
};

TEST_P(Cgroup, IsThereAsLongAsItsObject) {
  {
    const JobCgroup cgroup = make();
    EXPECT_EQ(cgroup.folder(), folder());
    EXPECT_TRUE(std::filesystem::exists(folder() + "/cgroup.procs"));
    EXPECT_THAT(find_cgroups(name_), ElementsAre(folder()));
  }
  EXPECT_THAT(find_cgroups(name_), IsEmpty());
}

TEST_P(Cgroup, IsFoundBelowAnother) {
  const JobCgroup cgroup = make();
  const std::string inner = cgroup.folder() + "/" + name_ + "-inner";
  std::filesystem::create_directory(inner);
  EXPECT_THAT(find_cgroups(name_ + "-inner"), ElementsAre(inner));
}

TEST_P(Cgroup, HoldsWhatForgotWhereItCameFrom) {
  const JobCgroup cgroup = make();
  const pid_t child = begin(cgroup, "env -i setsid sh -c 'setsid sleep 1000 & exec sleep 1000' & exec sleep 1000");
  EXPECT_TRUE(comes_to(cgroup, 3));
  EXPECT_FALSE(remove_cgroup(cgroup.folder()));
  end(cgroup, child);
  EXPECT_TRUE(remove_cgroup(cgroup.folder()));
}

TEST_P(Cgroup, IsNotTakenFromAnother) {
  const JobCgroup cgroup = make();
  const pid_t child = begin(cgroup, "exec sleep 1000");
  const auto second = JobCgroup::make(place_, name_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("processes of another job"));
  end(cgroup, child);
}

TEST_P(Cgroup, ReplacesOneThatWasLeftEmptyWithOthersInIt) {
  const JobCgroup first = make();
  std::filesystem::create_directory(first.folder() + "/inner");
  const JobCgroup second = make();
  EXPECT_TRUE(std::filesystem::exists(folder()));
  EXPECT_FALSE(std::filesystem::exists(folder() + "/inner"));
}

TEST_P(Cgroup, IsNotMadeWhereThereAreNone) {
  const auto made = JobCgroup::make({GetParam(), "/tmp", "/tmp"}, name_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "no cgroup in /tmp");
  EXPECT_FALSE(std::filesystem::exists("/tmp/" + name_));
}

INSTANTIATE_TEST_SUITE_P(Versions, Cgroup, testing::Values(1, 2));

TEST(CgroupName, TellsPoolsAndJobsApart) {
  EXPECT_THAT(cgroup_name("/", 7), testing::MatchesRegex("remuda-[0-9a-f]+-7"));
  EXPECT_EQ(cgroup_name("/", 7), cgroup_name("/", 7));
  EXPECT_NE(cgroup_name("/", 7), cgroup_name("/tmp", 7));
  EXPECT_EQ(cgroup_name("/no/such/pool", 7), "");
}

TEST(CgroupName, OfNothingIsNotFound) { EXPECT_THAT(find_cgroups(""), IsEmpty()); }

TEST(RemoveCgroup, IsDoneWhereThereIsNone) { EXPECT_TRUE(remove_cgroup("/sys/fs/cgroup/no/such")); }

}  // namespace
}  // namespace remuda::confine
