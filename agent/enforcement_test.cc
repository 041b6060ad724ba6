// Uses the kernel: where this process may load no programs of that kind, these tests are skipped.
#include "agent/enforcement.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "base/testing/scratch_folder.h"
#include "confine/testing/guarded_tree.h"

namespace remuda::agent {
namespace {

using confine::GuardedTree;
using policy::Enforce;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kFile = "/dev/full";

/// A machine with one device, whose node is that of /dev/full.
class EnforcementTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!tree_.obstacle().empty()) GTEST_SKIP() << tree_.obstacle();
    Device device;
    device.id = "uuid-0";
    device.kind = DeviceKind::gpu;
    device.index = 0;
    device.pci = std::string("0000:01:00.0");
    box_.devices.push_back(device);
    sysfs_.write("bus/pci/devices/0000:01:00.0/drm/card0/dev", "1:7\n");
    job_ = tree_.make("job");
    other_ = tree_.make("other");
    start();
  }
  /// An agent starts; the one before it, if any, was killed.
  void start() {
    enforcement_.emplace(Enforcement::Options{
        tree_.root(), GuardedTree::kGuard, [this](const std::string& text) { said_.push_back(text); }, sysfs_.path()});
  }
  void set(Enforce enforce, const std::vector<std::string>& exempt = {}) {
    policy::Policy policy;
    policy.enforce = enforce;
    policy.exempt = exempt;
    enforcement_->update(policy, box_);
  }
  int open_in(const std::string& cgroup) const { return GuardedTree::opens(cgroup, kFile); }

  const GuardedTree tree_;
  const ScratchFolder sysfs_;
  Inventory box_;
  std::string job_, other_;
  std::optional<Enforcement> enforcement_;
  std::vector<std::string> said_;
};

TEST_F(EnforcementTest, EveryoneIsKeptFromADeviceUntilTheyHoldIt) {
  set(Enforce::jobs);
  EXPECT_EQ(open_in(other_), 0);
  EXPECT_FALSE(enforcement_->hides_devices());
  set(Enforce::everyone);
  EXPECT_TRUE(enforcement_->hides_devices());
  EXPECT_EQ(open_in(other_), EPERM);
  EXPECT_EQ(open_in(job_), EPERM);
  ASSERT_TRUE(enforcement_->let(7, job_, {{1, 7}}));
  EXPECT_EQ(open_in(job_), 0);
  EXPECT_EQ(open_in(other_), EPERM);
  EXPECT_EQ(GuardedTree::opens(other_, kFile, 0), 0) << "root";
  enforcement_->withdraw(7);
  EXPECT_EQ(open_in(job_), EPERM);
  set(Enforce::off);
  EXPECT_EQ(open_in(other_), 0);
  EXPECT_FALSE(enforcement_->filters_jobs());
}

TEST_F(EnforcementTest, ADeviceWhoseFilesAreNotKnownIsClosed) {
  Device device = box_.devices[0];
  device.id = "uuid-1";
  device.index = 1;
  device.vendor = std::string("NVIDIA");
  device.pci = std::string("0000:02:00.0");
  box_.devices.push_back(device);
  set(Enforce::jobs);
  EXPECT_THAT(enforcement_->closed(), IsEmpty());
  set(Enforce::everyone);
  EXPECT_THAT(enforcement_->closed(), ElementsAre("uuid-1"));
  EXPECT_THAT(
      said_,
      testing::Contains(HasSubstr("does not report the device files of gpu:1: nobody but root and exempt units open")));
  box_.devices[1].minor = 7;
  set(Enforce::everyone);
  EXPECT_THAT(enforcement_->closed(), IsEmpty());
}

TEST_F(EnforcementTest, AJobThatRunsKeepsItsDeviceWhenTheGuardComes) {
  ASSERT_TRUE(enforcement_->let(7, job_, {{1, 7}}));
  set(Enforce::everyone);
  EXPECT_EQ(open_in(job_), 0);
  EXPECT_EQ(open_in(other_), EPERM);
}

TEST_F(EnforcementTest, AJobThatCannotBeLetIsRefused) {
  EXPECT_TRUE(enforcement_->let(7, "", {{1, 7}}));
  set(Enforce::everyone);
  EXPECT_TRUE(enforcement_->let(7, "", {})) << "it has no device with a file";
  const auto let = enforcement_->let(7, "", {{1, 7}});
  ASSERT_FALSE(let);
  EXPECT_THAT(let.error().message, HasSubstr("only a job in a cgroup of version 2"));
}

TEST_F(EnforcementTest, UnderAuditAJobThatCannotBeLetRunsAndIsToldOfOnce) {
  set(Enforce::audit);
  said_.clear();
  for (int64_t job = 7; job < 10; ++job) EXPECT_TRUE(enforcement_->let(job, "", {{1, 7}}));
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_EQ(said_[0], "enforce = \"audit\": only a job in a cgroup of version 2 can be let to device files");
  ASSERT_TRUE(enforcement_->let(10, job_, {{1, 7}}));
  EXPECT_TRUE(enforcement_->let(11, "", {{1, 7}}));
  EXPECT_THAT(said_, SizeIs(1));
}

TEST_F(EnforcementTest, ADeviceOfUnknownFilesClosesNoneThatAnotherManagerGivesOut) {
  for (int index : {1, 2}) {
    Device device;
    device.id = "gpu:" + std::to_string(index);
    device.kind = DeviceKind::gpu;
    device.vendor = "NVIDIA";
    device.index = index;
    if (index == 1) device.minor = 0;
    box_.devices.push_back(device);
  }
  policy::Policy policy;
  policy.enforce = Enforce::audit;
  const auto is_guarded = [&] {
    const auto guard = confine::DeviceGuard::attach(tree_.root(), GuardedTree::kGuard, confine::GuardMode::report);
    return guard && std::ranges::count(guard->rules(), confine::GuardRule{0, 195, 0}) > 0;
  };
  enforcement_->update(policy, box_);
  EXPECT_TRUE(is_guarded()) << "it may be of the one whose files are not known";
  enforcement_->update(policy, box_, {"gpu:1"});
  EXPECT_FALSE(is_guarded());
}

TEST_F(EnforcementTest, EachRefusalIsSaidAlsoWhereTheyAreMany) {
  set(Enforce::audit);
  said_.clear();
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(open_in(other_) == 0);
  enforcement_->step(10);
  EXPECT_THAT(said_, SizeIs(20));
  enforcement_->step(11);
  EXPECT_THAT(said_, SizeIs(25));
}

TEST_F(EnforcementTest, AnObstacleThatLastsIsToldOfOnce) {
  Device unknown;
  unknown.id = "gpu:1";
  unknown.kind = DeviceKind::gpu;
  unknown.vendor = "NVIDIA";
  unknown.index = 1;
  box_.devices.push_back(unknown);
  set(Enforce::audit);
  EXPECT_THAT(said_, testing::Contains(HasSubstr("does not report the device files of gpu:1: who opens any")));
  said_.clear();
  ASSERT_TRUE(enforcement_->let(7, job_, {{1, 7}}));
  enforcement_->withdraw(7);
  set(Enforce::audit);
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(EnforcementTest, ReadsItsNewsAlsoWhereItsGuardIsGone) {
  tree_.make("system.slice");
  set(Enforce::everyone, {"a.service"});
  set(Enforce::jobs);
  tree_.make("system.slice/b.service");
  enforcement_->step(0);
  EXPECT_FALSE(enforcement_->needs_reading());
  for (const int fd : enforcement_->fds()) {
    pollfd polled{fd, POLLIN, 0};
    EXPECT_EQ(::poll(&polled, 1, 0), 0) << "whoever waits for it would wake for ever";
  }
}

TEST_F(EnforcementTest, TellsOnceWhichExemptUnitsHaveNoCgroup) {
  tree_.make("system.slice/a.service");
  const auto tells = HasSubstr("have no cgroup at the moment: b.service; they do not run, or have another name");
  set(Enforce::everyone, {"a.service", "b.service"});
  EXPECT_THAT(said_, testing::Contains(tells));
  said_.clear();
  set(Enforce::everyone, {"a.service", "b.service"});
  enforcement_->step(10);
  EXPECT_THAT(said_, IsEmpty());
  set(Enforce::everyone, {"a.service"});
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(EnforcementTest, ExemptUnitsOpenEverything) {
  const std::string unit = tree_.make("system.slice/a.service");
  set(Enforce::everyone, {"a.service", "b.service"});
  EXPECT_EQ(open_in(unit), 0);
  EXPECT_EQ(open_in(tree_.make("system.slice/a.service/inner")), 0);
  const std::string starts = tree_.make("system.slice/b.service");
  EXPECT_EQ(open_in(starts), EPERM);
  enforcement_->step(0);
  EXPECT_EQ(open_in(starts), 0) << "it has started since";
  set(Enforce::everyone, {"b.service"});
  EXPECT_EQ(open_in(unit), EPERM) << "no longer exempt";
}

TEST_F(EnforcementTest, AnAgentThatIsKilledLeavesAllAsItIs) {
  set(Enforce::everyone, {"a.service"});
  const std::string unit = tree_.make("system.slice/a.service");
  enforcement_->step(0);
  ASSERT_TRUE(enforcement_->let(7, job_, {{1, 7}}));
  enforcement_.reset();
  EXPECT_EQ(open_in(job_), 0);
  EXPECT_EQ(open_in(unit), 0);
  EXPECT_EQ(open_in(other_), EPERM);
  start();
  Inventory lost;  // the driver does not answer at the moment
  std::swap(box_, lost);
  ASSERT_TRUE(enforcement_->let(7, job_, {}));
  set(Enforce::everyone, {"a.service"});
  EXPECT_EQ(open_in(job_), 0);
  EXPECT_EQ(open_in(unit), 0);
  EXPECT_EQ(open_in(other_), EPERM);
}

TEST_F(EnforcementTest, TheNextAgentLetsNoJobThatHasEnded) {
  set(Enforce::everyone);
  ASSERT_TRUE(enforcement_->let(7, job_, {{1, 7}}));
  start();
  set(Enforce::everyone);
  EXPECT_EQ(open_in(job_), EPERM);
}

TEST_F(EnforcementTest, TheNextAgentTakesTheGuardAwayWhereItsPolicySaysSo) {
  set(Enforce::everyone);
  start();
  EXPECT_EQ(open_in(other_), EPERM);
  set(Enforce::jobs);
  EXPECT_EQ(open_in(other_), 0);
  EXPECT_THAT(said_, testing::Contains("device files are not guarded any more"));
}

TEST_F(EnforcementTest, AuditTellsWhomItWouldRefuse) {
  set(Enforce::audit);
  said_.clear();
  EXPECT_EQ(open_in(other_), 0);
  ASSERT_TRUE(enforcement_->let(7, job_, {{1, 7}}));
  EXPECT_EQ(open_in(job_), 0);
  enforcement_->step(10);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], testing::MatchesRegex("process [0-9]+ \\(agent_test\\) of user 61001 would be kept from gpu:0 "
                                              "\\(device file 1:7\\)"));
  enforcement_->step(20);
  EXPECT_THAT(said_, SizeIs(1)) << "once";
  set(Enforce::everyone);
  said_.clear();
  EXPECT_EQ(open_in(other_), EPERM);
  enforcement_->step(30);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("was kept from gpu:0"));
}

TEST(Enforcement, WithoutAPlaceForAGuardIsOfJobsOnly) {
  std::vector<std::string> said;
  Enforcement enforcement({"", "", [&](const std::string& text) { said.push_back(text); }});
  policy::Policy policy;
  policy.enforce = Enforce::everyone;
  enforcement.update(policy, {});
  enforcement.update(policy, {});
  EXPECT_THAT(said, ElementsAre(HasSubstr("enforce = \"everyone\": jobs alone are kept from devices")));
  EXPECT_FALSE(enforcement.hides_devices());
  EXPECT_TRUE(enforcement.filters_jobs());
  EXPECT_TRUE(enforcement.let(1, "", {{1, 7}}));
}

TEST_F(EnforcementTest, WhatOthersGiveOutIsNotGuarded) {
  set(Enforce::everyone);
  EXPECT_EQ(open_in(other_), EPERM);
  policy::Policy policy;
  policy.enforce = Enforce::everyone;
  enforcement_->update(policy, box_, {"uuid-0"});
  EXPECT_EQ(open_in(other_), 0);
  enforcement_->update(policy, box_);
  EXPECT_EQ(open_in(other_), EPERM);
}

}  // namespace
}  // namespace remuda::agent
