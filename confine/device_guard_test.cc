// Uses the kernel: where this process may load no programs of that kind, these tests are skipped. The guard is at the
// root of a tree of their own, and guards harmless devices: /dev/full and /dev/zero.
#include "confine/device_guard.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "confine/testing/guarded_tree.h"

namespace remuda::confine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr DeviceNode kFull{1, 7}, kZero{1, 5};
constexpr const char *kFullFile = "/dev/full", *kZeroFile = "/dev/zero";

GuardRule guarded(const DeviceNode& node) { return {0, node.major, node.minor}; }
GuardRule let(const std::string& cgroup, const DeviceNode& node) { return {cgroup_id(cgroup), node.major, node.minor}; }

class DeviceGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!tree_.obstacle().empty()) GTEST_SKIP() << tree_.obstacle();
    ASSERT_EQ(GuardedTree::opens(other_ = tree_.make("other"), kFullFile), 0) << "before anything is guarded";
    job_ = tree_.make("job");
  }
  void TearDown() override {
    if (!tree_.obstacle().empty()) return;
    EXPECT_TRUE(DeviceGuard::remove(tree_.root(), GuardedTree::kGuard));
  }
  DeviceGuard attach(GuardMode mode = GuardMode::refuse) const {
    auto guard = DeviceGuard::attach(tree_.root(), GuardedTree::kGuard, mode);
    if (!guard) throw std::runtime_error(guard.error().message);
    return std::move(*guard);
  }

  const GuardedTree tree_;
  std::string job_, other_;
};

TEST_F(DeviceGuardTest, NobodyOpensAGuardedDeviceButFromACgroupThatWasLetToIt) {
  DeviceGuard guard = attach();
  ASSERT_TRUE(guard.set_rules({guarded(kFull), guarded(kZero), let(job_, kFull)}));
  EXPECT_EQ(GuardedTree::opens(other_, kFullFile), EPERM);
  EXPECT_EQ(GuardedTree::opens(job_, kFullFile), 0);
  EXPECT_EQ(GuardedTree::opens(job_, kZeroFile), EPERM) << "it was let to another one";
  EXPECT_EQ(GuardedTree::opens(tree_.make("job/a/b"), kFullFile), 0) << "a container within the job";
  EXPECT_EQ(GuardedTree::opens(other_, "/dev/null"), 0) << "nobody guards it";
}

TEST_F(DeviceGuardTest, RootIsNotKeptOut) {
  DeviceGuard guard = attach();
  ASSERT_TRUE(guard.set_rules({guarded(kFull)}));
  EXPECT_EQ(GuardedTree::opens(other_, kFullFile, 0), 0);
  EXPECT_THAT(guard.take_refused(), IsEmpty());
}

TEST_F(DeviceGuardTest, RulesThatAreTakenBackHoldNoLonger) {
  DeviceGuard guard = attach();
  ASSERT_TRUE(guard.set_rules({guarded(kFull), let(job_, kFull)}));
  ASSERT_TRUE(guard.set_rules({guarded(kFull)}));
  EXPECT_EQ(GuardedTree::opens(job_, kFullFile), EPERM);
  ASSERT_TRUE(guard.set_rules({}));
  EXPECT_EQ(GuardedTree::opens(job_, kFullFile), 0);
}

TEST_F(DeviceGuardTest, ReportsWithoutRefusing) {
  DeviceGuard guard = attach(GuardMode::report);
  ASSERT_TRUE(guard.set_rules({guarded(kFull)}));
  EXPECT_EQ(GuardedTree::opens(other_, kFullFile), 0);
  EXPECT_THAT(guard.take_refused(), SizeIs(1));
}

TEST_F(DeviceGuardTest, TellsWhoWasRefusedOnce) {
  DeviceGuard guard = attach();
  ASSERT_TRUE(guard.set_rules({guarded(kFull), guarded(kZero)}));
  EXPECT_EQ(GuardedTree::opens(other_, kFullFile), EPERM);
  const auto refused = guard.take_refused();
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].uid, GuardedTree::kUser);
  EXPECT_GT(refused[0].pid, 1);
  EXPECT_EQ(refused[0].node, kFull);
  EXPECT_EQ(refused[0].command, "confine_test");
  EXPECT_EQ(GuardedTree::opens(other_, kZeroFile), EPERM);
  EXPECT_THAT(guard.take_refused(), ElementsAre(testing::Field(&Refused::node, kZero)));
}

TEST_F(DeviceGuardTest, StaysInForceWhenItsProcessIsKilledAndIsTakenOver) {
  const std::set<GuardRule> rules{guarded(kFull), let(job_, kFull)};
  const pid_t child = ::fork();
  if (child == 0) {
    DeviceGuard guard = attach();
    if (guard.set_rules(rules)) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(GuardedTree::opens(other_, kFullFile), EPERM);
  EXPECT_EQ(GuardedTree::opens(job_, kFullFile), 0);
  EXPECT_EQ(GuardedTree::opens(other_, kFullFile, 0), 0);
  DeviceGuard guard = attach();
  EXPECT_EQ(guard.rules(), rules);
  EXPECT_EQ(GuardedTree::opens(other_, kFullFile), EPERM);
  EXPECT_EQ(GuardedTree::opens(job_, kFullFile), 0);
  ASSERT_TRUE(guard.set_rules({guarded(kFull)}));
  EXPECT_EQ(GuardedTree::opens(job_, kFullFile), EPERM) << "the one before still lets it";
}

TEST_F(DeviceGuardTest, IsReplacedByAnotherMode) {
  DeviceGuard guard = attach();
  ASSERT_TRUE(guard.set_rules({guarded(kFull)}));
  const DeviceGuard reports = attach(GuardMode::report);
  EXPECT_EQ(GuardedTree::opens(other_, kFullFile), 0) << "the one before still refuses";
}

TEST_F(DeviceGuardTest, IsTakenAwayByItsName) {
  DeviceGuard guard = attach();
  ASSERT_TRUE(guard.set_rules({guarded(kFull)}));
  EXPECT_FALSE(*DeviceGuard::remove(tree_.root(), "remuda_other"));
  EXPECT_EQ(GuardedTree::opens(other_, kFullFile), EPERM);
  EXPECT_TRUE(*DeviceGuard::remove(tree_.root(), GuardedTree::kGuard));
  EXPECT_EQ(GuardedTree::opens(other_, kFullFile), 0);
  EXPECT_FALSE(*DeviceGuard::remove(tree_.root(), GuardedTree::kGuard));
}

TEST(DeviceGuard, SaysWhatStandsInTheWay) {
  const auto none = DeviceGuard::attach("/no/such/folder", "remuda_test", GuardMode::refuse);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "/no/such/folder cannot be opened: No such file or directory");
  EXPECT_FALSE(DeviceGuard::attach("/tmp", "remuda_test", GuardMode::refuse)) << "it is no cgroup";
  EXPECT_EQ(cgroup_id("/no/such/folder"), 0U);
}

}  // namespace
}  // namespace remuda::confine
