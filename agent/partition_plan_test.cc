#include "agent/partition_plan.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>

#include "agent/testing/service_fixture.h"
#include "place/testing/machine.h"
#include "pool/transitions.h"

namespace remuda::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using What = PartitionChange::What;

constexpr int64_t kGib = int64_t{1} << 30;

/// Two GPUs of 40 GiB: gpu:0 is whole, gpu:1 is cut.
class PartitionPlan : public ::testing::Test {
 protected:
  PartitionPlan() {
    machine_ = box_of(2);
    for (Device& device : machine_.devices) device.memory_bytes = 40 * kGib;
    cut().partitioned = true;
    set_room(7, 2);
  }
  Device& cut() { return machine_.devices[1]; }
  void set_room(int small, int large) {
    cut().offers =
        std::vector<PartitionOffer>{{"1g.5gb", 5 * kGib, 14, small, 7}, {"3g.20gb", 20 * kGib, 42, large, 2}};
  }
  void add_partition(const std::string& id, const std::string& profile, int64_t bytes) {
    Device device{.kind = DeviceKind::partition, .index = static_cast<int>(machine_.devices.size()) - 2};
    device.id = id;
    device.uuid = id;
    device.parent = cut().id;
    device.profile = profile;
    device.memory_bytes = bytes;
    device.status.processes = std::vector<Process>{};
    machine_.devices.push_back(std::move(device));
  }
  static pool::Job job_of(const std::string& user, double share, int count = 1) {
    pool::Job job = job_named("one");
    job.user = user;
    job.uid = static_cast<int>(user.front());
    job.keeper = process::own_process_id();
    job.request.count = count;
    job.request.share = share;
    return job;
  }
  /// The whole GPU is held, so that parts are of the other one.
  int64_t submit(const std::string& user, double share, double now_s = 100) {
    const auto id = pool::submit(state_, job_of(user, share), offered().machine(), now_s);
    EXPECT_TRUE(id) << id.error().message;
    return id.value_or(0);
  }
  OfferedPartitions offered() const { return {machine_, cut_by_policy(policy_)}; }
  std::vector<place::Held> held() const { return {{.device = machine_.devices[0].id, .holder = "root"}}; }
  std::vector<int64_t> schedule(double now_s = 100) {
    std::vector<place::Held> all = held();
    std::ranges::move(offered().held(), std::back_inserter(all));
    return pool::schedule(state_, offered().machine(), all, policy_, now_s);
  }
  std::optional<PartitionChange> plan(double now_s = 100) const {
    return plan_partitions(state_, offered(), held(), own_, policy_, now_s, refused_);
  }
  PartitionChange make(const std::string& profile) const { return {What::make, machine_.devices[1].id, profile, ""}; }
  PartitionChange remove(const std::string& id) const { return {What::remove, machine_.devices[1].id, "", id}; }

  Inventory machine_;
  pool::PoolState state_;
  policy::Policy policy_{.mig = policy::Rule<std::vector<std::string>>{{"gpu:1"}, "policy.toml:2"}};
  std::set<std::string> own_;
  std::vector<PartitionChange> refused_;
};

TEST_F(PartitionPlan, MakesTheSmallestThatIsLargeEnough) {
  EXPECT_EQ(plan(), std::nullopt) << "nobody waits";
  const int64_t job = submit("ada", 0.1);
  EXPECT_THAT(schedule(), SizeIs(0));
  EXPECT_THAT(state_.find(job)->why, HasSubstr("would be a 1g.5gb of gpu:1, and is not there yet"));
  EXPECT_EQ(plan(), make("1g.5gb"));
  ASSERT_TRUE(pool::cancel(state_, job, {0, "root"}, 100));
  submit("ada", 0.4);
  EXPECT_EQ(plan(), make("3g.20gb"));
}

TEST_F(PartitionPlan, MakesNoneForAJobThatIsServedByOneThatIsThere) {
  add_partition("MIG-1", "1g.5gb", 5 * kGib);
  submit("ada", 0.1);
  EXPECT_EQ(plan(), std::nullopt);
  EXPECT_THAT(schedule(), SizeIs(1));
  EXPECT_EQ(state_.leases.at(0).device, "MIG-1");
}

TEST_F(PartitionPlan, MakesNoneForJobsThatMayNotStart) {
  const int64_t job = submit("ada", 0.1);
  ASSERT_TRUE(pool::pause(state_, job, 0));
  EXPECT_EQ(plan(), std::nullopt);
}

TEST_F(PartitionPlan, MakesNoneForAnArrayWhichIsItsJobs) {
  const int64_t job = submit("ada", 0.1);
  state_.find(job)->array = job;
  EXPECT_EQ(plan(), std::nullopt);
}

TEST_F(PartitionPlan, MakesNoneOfAGpuThatIsDrainedReservedOrWhole) {
  submit("ada", 0.1);
  ASSERT_EQ(plan(), make("1g.5gb"));
  state_.drains = {{.device = cut().id, .reason = "its fan is broken"}};
  EXPECT_EQ(plan(), std::nullopt);
  state_.drains.clear();
  policy_.reservations = {{.devices = {"gpu:1"}, .who = {.users = {"bob"}}, .where = "policy.toml:9"}};
  EXPECT_EQ(plan(), std::nullopt);
  policy_.reservations.clear();
  cut().partitioned = false;
  EXPECT_THAT(offered().offers(), SizeIs(0)) << "its mode is the administrator's";
}

TEST_F(PartitionPlan, MakesNoneThatThePolicyDoesNotAllow) {
  policy_.mig.reset();
  const auto refused = pool::submit(state_, job_of("ada", 0.1, 3), offered().machine(), 100);
  EXPECT_FALSE(refused);
  EXPECT_THAT(offered().offers(), SizeIs(0));
}

TEST_F(PartitionPlan, TakesItsOwnIdleOnesAwayForAnotherSize) {
  for (const char* id : {"MIG-1", "MIG-2"}) add_partition(id, "1g.5gb", 5 * kGib);
  set_room(4, 0);
  own_ = {"MIG-2"};
  EXPECT_EQ(plan(), std::nullopt) << "nobody needs the room";
  submit("ada", 0.4);
  EXPECT_EQ(plan(), remove("MIG-2")) << "the other one is an administrator's";
  machine_.devices.back().status.processes = std::vector<Process>{{.pid = 7, .type = "compute"}};
  EXPECT_EQ(plan(), std::nullopt) << "a process uses it";
  machine_.devices.back().status.processes = Missing{MissingReason::denied, "it may not be asked"};
  EXPECT_EQ(plan(), std::nullopt) << "it is not known whether one does";
}

TEST_F(PartitionPlan, TakesNoneAwayThatAJobHolds) {
  add_partition("MIG-1", "1g.5gb", 5 * kGib);
  own_ = {"MIG-1"};
  submit("ada", 0.1);
  ASSERT_THAT(schedule(), SizeIs(1));
  set_room(4, 0);
  submit("bob", 0.4);
  EXPECT_EQ(plan(), std::nullopt);
  policy_.mig.reset();
  EXPECT_EQ(plan(), std::nullopt);
}

TEST_F(PartitionPlan, TakesItsOwnIdleOnesAwayWhereThePolicyHasChanged) {
  for (const char* id : {"MIG-1", "MIG-2"}) add_partition(id, "1g.5gb", 5 * kGib);
  own_ = {"MIG-1"};
  policy_.mig.reset();
  EXPECT_EQ(plan(), remove("MIG-1"));
}

TEST_F(PartitionPlan, MakesNoneForThoseBehindAJobThatHasWaitedLong) {
  add_partition("MIG-1", "1g.5gb", 5 * kGib);
  set_room(4, 0);
  submit("ada", 0.4);
  policy_.patience_s = 900;
  const int64_t behind = submit("bob", 0.1, 200);
  std::vector<place::Held> all = held();
  all.push_back({.device = "MIG-1", .holder = "an administrator"});
  EXPECT_EQ(plan_partitions(state_, offered(), all, own_, policy_, 300), make("1g.5gb")) << behind;
  EXPECT_EQ(plan_partitions(state_, offered(), all, own_, policy_, 1100), std::nullopt);
  state_.jobs.front().begin_s = 1099;
  EXPECT_EQ(plan_partitions(state_, offered(), all, own_, policy_, 1100), make("1g.5gb"))
      << "it has not waited so long";
}

TEST_F(PartitionPlan, JobsThatWaitForWholeDevicesHoldUpNone) {
  for (int i = 0; i < 40; ++i) submit("ada", 1);
  policy_.patience_s = 900;
  const int64_t small = submit("bob", 0.1, 200);
  EXPECT_EQ(plan(300), make("1g.5gb"));
  EXPECT_EQ(plan(5000), make("1g.5gb")) << "they have waited long, and not for this";
  add_partition("MIG-1", "1g.5gb", 5 * kGib);
  EXPECT_THAT(schedule(5000), ::testing::ElementsAre(small));
}

TEST_F(PartitionPlan, WhatTheDriverRefusesHoldsUpNothingElse) {
  for (const char* id : {"MIG-1", "MIG-2"}) add_partition(id, "1g.5gb", 5 * kGib);
  own_ = {"MIG-1", "MIG-2"};
  policy_.mig.reset();
  refused_ = {remove("MIG-1")};
  EXPECT_EQ(plan(), remove("MIG-2"));
  policy_.mig = policy::Rule<std::vector<std::string>>{{"gpu:0", "gpu:1"}, "policy.toml:2"};
  own_.clear();
  Device& other = machine_.devices[0];
  other.partitioned = true;
  other.offers = std::vector<PartitionOffer>{{"3g.20gb", 20 * kGib, 42, 2, 2}};
  set_room(2, 1);
  submit("ada", 0.4);
  refused_.clear();
  const auto first = plan_partitions(state_, offered(), {}, own_, policy_, 100, {});
  ASSERT_TRUE(first && first->what == What::make);
  const auto second = plan_partitions(state_, offered(), {}, own_, policy_, 100, {*first});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->what, What::make);
  EXPECT_NE(second->gpu, first->gpu);
}

TEST_F(PartitionPlan, NothingIsChangedOfAGpuThatIsToBeSettledFirst) {
  add_partition("MIG-1", "1g.5gb", 5 * kGib);
  own_ = {"MIG-1"};
  set_room(4, 0);
  submit("ada", 0.4);
  ASSERT_EQ(plan(), remove("MIG-1"));
  refused_ = {{What::settle, cut().id, "", ""}};
  EXPECT_EQ(plan(), std::nullopt);
  set_room(4, 1);
  EXPECT_EQ(plan(), std::nullopt);
  refused_ = {{What::settle, machine_.devices[0].id, "", ""}};
  EXPECT_EQ(plan(), make("3g.20gb")) << "another GPU's does not matter";
}

/// Three of the second card's parts are there and in use, and a seventh of it is left.
TEST_F(PartitionPlan, OfARecordedMachineMakesWhatTheCardStillOffers) {
  machine_ = place::recorded_machine("made-mig-a100");
  std::vector<place::Held> all = held();
  std::ranges::move(place::held_by_processes(machine_), std::back_inserter(all));
  const auto plan_now = [&] { return plan_partitions(state_, offered(), all, own_, policy_, 100, {}); };
  const int64_t small = submit("ada", 0.1);
  EXPECT_EQ(plan_now(), make("1g.5gb"));
  ASSERT_TRUE(pool::cancel(state_, small, {0, "root"}, 100));
  submit("ada", 0.2);
  EXPECT_EQ(plan_now(), std::nullopt) << "no room for two sevenths";
}

}  // namespace
}  // namespace remuda::agent
