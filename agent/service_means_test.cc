// What a service does beside its answers: who sees the machine, who is kept from it, and who keeps jobs that lost their
// keepers.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "agent/testing/service_fixture.h"
#include "confine/testing/guarded_tree.h"
#include "pool/admission.h"
#include "pool/testing/faulty_vfs.h"

namespace remuda::agent {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST_F(ServiceTest, ShowsTheMachineWithoutTheCommandsOfOthers) {
  Inventory box = box_of(1);
  Process own, other;
  own.pid = 1, own.user = std::string("ada"), own.command = std::string("own");
  other.pid = 2, other.user = std::string("eve"), other.command = std::string("secret");
  box.devices[0].status.processes = std::vector<Process>{own, other};
  service_->reading_has_begun();
  service_->take_reading(
      *pool::MachineView::open(
          pool_, [&] { return Result<Inventory>(box); }, [] { return Result<pool::Policy>(); }, false),
      now_s_);
  const Caller ada{1000, false, process::own_process_id()};
  const auto answer = ask(ada, {.ask = wire::Ask::machine});
  ASSERT_TRUE(answer);
  const auto seen = parse_inventory(to_line(answer->result), "the answer");
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(seen->devices[0].model, "Test 1000");
  EXPECT_EQ(seen->devices[0].status.processes.value()[0].command.value_or(""), "own");
  EXPECT_FALSE(seen->devices[0].status.processes.value()[1].command.has_value());
  now_s_ += 10;
  EXPECT_FALSE(ask(ada, {.ask = wire::Ask::machine})) << "a newer reading comes first";
  EXPECT_TRUE(service_->wants_reading(now_s_));
}

/// Or those would have no limits who come while the user databases do not answer.
TEST_F(ServiceTest, TakesNothingFromUnknownUsersWhereLimitsGoByName) {
  pool::Policy policy;
  const auto look = [&] {
    service_->reading_has_begun();
    service_->take_reading(
        *pool::MachineView::open(
            pool_, [] { return Result<Inventory>(box_of(1)); }, [&] { return Result<pool::Policy>(policy); }, false),
        now_s_);
  };
  const process::ChildProcess first = process::family(), second = process::family(), third = process::family();
  user_ = {"1000", {}, /*is_known=*/false};
  const auto submit = [&](const process::ChildProcess& child, const std::string& id = "") {
    return apply(caller_for(child), pool::Submit{.job = job_named("one")}, id);
  };
  policy.limits.push_back({.who = {}, .waiting = policy::Rule<int>{.value = 100}});
  look();
  const auto same_for_all = submit(first);
  ASSERT_TRUE(same_for_all);
  EXPECT_FALSE(same_for_all->error) << "the same for all";
  policy.limits.push_back({.who = {.groups = {"guests"}}, .waiting = policy::Rule<int>{.value = 0}});
  look();
  const int64_t job = wire::parse_applied(same_for_all->result)->job;
  EXPECT_FALSE(submit(second, "asked")) << "a name may still come";
  now_s_ += 61;
  look();
  const auto refused = submit(second, "asked");
  ASSERT_TRUE(refused && refused->error);
  EXPECT_EQ(refused->error->message,
            "the limits of this machine go by name and groups, and its user databases do not say those of user 1000: "
            "try again, or ask your administrator");
  EXPECT_FALSE(apply(caller_for(first), pool::Reprioritize{.jobs = {job}, .priority = 5}));
  const auto cancelled = apply(caller_for(first), pool::Cancel{.jobs = {job}});
  ASSERT_TRUE(cancelled);
  EXPECT_FALSE(cancelled->error) << "what is theirs they may end";
  user_.is_known = true;
  const auto taken = submit(third);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->error);
}

TEST_F(ServiceTest, SaysWhatIsWrongWithThePolicyOnceAndWhenItIsMended) {
  Result<pool::Policy> policy;
  const auto read = [&] {
    return *pool::MachineView::open(pool_, [] { return Result<Inventory>(box_of(1)); }, [&] { return policy; }, false);
  };
  std::vector<std::string> said;
  service_.reset();
  auto service =
      Service::open(pool_, read(), kNow_s, {.say = [&](const std::string& sentence) { said.push_back(sentence); }});
  ASSERT_TRUE(service);
  service_.emplace(std::move(*service));
  const auto look = [&] {
    service_->reading_has_begun();
    service_->take_reading(read(), now_s_);
  };
  look();
  process::ChildProcess first = process::family(), second = process::family(), third = process::family();
  submit(caller_for(first));
  const int64_t job = submit(caller_for(second));
  policy = usage_error("policy.toml:2: limit.devices is true");
  look();
  look();
  EXPECT_THAT(said,
              testing::ElementsAre("no job starts while the policy is wrong: policy.toml:2: limit.devices is true"));
  EXPECT_EQ(find(job)->why, said.front());
  policy = pool::Policy{};
  const auto answer = apply(caller_for(third), pool::Submit{.job = job_named("three")});
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->error) << "the old error is not repeated";
  EXPECT_THAT(said, SizeIs(2));
}

TEST_F(ServiceTest, WhatACloudTakesBackEndsItsOwnDrainsAlone) {
  const Caller root{0, true, process::own_process_id()};
  ASSERT_FALSE(apply(root, pool::DrainDevices{{"gpu:1"}, "dusty", "root"})->error);
  const auto drains = [&] {
    std::vector<std::pair<std::string, std::string>> drains;
    service_->step(now_s_);
    const auto page = wire::parse_page(ask(root, {.ask = wire::Ask::read})->result);
    for (const pool::Drain& one : page->state.drains) drains.emplace_back(one.device, one.reason);
    return drains;
  };
  const std::pair<std::string, std::string> dusty{"gpu:1", "dusty"};
  service_->take_notice("it is taken away at noon");
  EXPECT_THAT(drains(), testing::ElementsAre(testing::Pair("gpu:0", testing::HasSubstr("noon")), dusty));
  service_->take_notice(std::nullopt);
  EXPECT_THAT(drains(), testing::ElementsAre(dusty));
}

TEST_F(ServiceTest, ADeviceThatIsNotCleanKeepsTheDrainOfAnAdministrator) {
  Inventory box = box_of(2);
  Process left;
  left.pid = 1 << 30, left.type = "compute";  // more than a kernel has
  for (Device& device : box.devices) device.status.processes = std::vector<Process>{left};
  const auto read = [&] {
    return *pool::MachineView::open(
        pool_, [&] { return Result<Inventory>(box); }, [] { return Result<pool::Policy>(); }, false);
  };
  service_.reset();
  auto service = Service::open(pool_, read(), kNow_s, {.handover = Handover(IdleMemory(), start_probe)});
  ASSERT_TRUE(service);
  service_.emplace(std::move(*service));
  const Caller root{0, true, process::own_process_id()};
  ASSERT_FALSE(apply(root, pool::DrainDevices{{"gpu:1"}, "dusty", "root"})->error);
  for (int looks = 0; looks < 2; ++looks) {
    service_->reading_has_begun();
    service_->take_reading(read(), now_s_ += kHandoverPatience_s + 1);
  }
  service_->step(now_s_);
  std::vector<std::string> reasons;
  const auto page = wire::parse_page(ask(root, {.ask = wire::Ask::read})->result);
  for (const pool::Drain& one : page->state.drains) reasons.push_back(one.reason);
  EXPECT_THAT(reasons, testing::ElementsAre(HasSubstr("is still on it"), "dusty"));
}

// Nobody asks for anything meanwhile.
TEST_F(ServiceTest, AGuardComesAndGoesWithThePolicy) {
  const confine::GuardedTree tree;
  if (!tree.obstacle().empty()) GTEST_SKIP() << tree.obstacle();
  folder_.write("sysfs/bus/pci/devices/0000:01:00.0/drm/card0/dev", "1:7\n");
  Inventory box = box_of(1);
  box.devices[0].pci = std::string("0000:01:00.0");
  policy::Policy policy;
  auto service = Service::open(
      pool_,
      *pool::MachineView::open(
          pool_, [&] { return Result<Inventory>(box); }, [&] { return Result<pool::Policy>(policy); }, false),
      kNow_s,
      {.enforcement =
           Enforcement({tree.root(), confine::GuardedTree::kGuard, [](const auto&) {}, folder_.path("sysfs")})});
  ASSERT_TRUE(service);
  const std::string shell = tree.make("shell");
  const auto opens = [&](double now_s) {
    EXPECT_LE(service->next_s(now_s), now_s + 10);
    service->step(now_s);
    return confine::GuardedTree::opens(shell, "/dev/full");
  };
  EXPECT_EQ(opens(kNow_s), 0);
  policy.enforce = policy::Enforce::everyone;
  EXPECT_EQ(opens(kNow_s + 11), EPERM);
  policy.enforce = policy::Enforce::jobs;
  EXPECT_EQ(opens(kNow_s + 22), 0);
}

TEST_F(ServiceTest, ACardThatComesLaterIsGuardedWithoutBeingAskedFor) {
  const confine::GuardedTree tree;
  if (!tree.obstacle().empty()) GTEST_SKIP() << tree.obstacle();
  folder_.write("sysfs/bus/pci/devices/0000:01:00.0/drm/card0/dev", "1:7\n");
  Inventory box = box_of(1);
  policy::Policy policy;
  policy.enforce = policy::Enforce::everyone;
  const auto view = [&] {
    return *pool::MachineView::open(
        pool_, [&] { return Result<Inventory>(box); }, [&] { return Result<pool::Policy>(policy); }, false);
  };
  auto service =
      Service::open(pool_, view(), kNow_s,
                    {.enforcement = Enforcement({tree.root(), confine::GuardedTree::kGuard, [](const auto&) {},
                                                 folder_.path("sysfs"), folder_.path("")})});
  ASSERT_TRUE(service);
  const auto read = [&] {
    service->reading_has_begun();
    service->take_reading(view(), kNow_s);
    service->step(kNow_s);
  };
  read();
  EXPECT_FALSE(service->wants_reading(kNow_s));
  const std::string shell = tree.make("shell");
  EXPECT_EQ(confine::GuardedTree::opens(shell, "/dev/full"), 0);
  box.devices[0].pci = std::string("0000:01:00.0");
  folder_.write("card0", "");
  service->step(kNow_s);
  EXPECT_TRUE(service->wants_reading(kNow_s));
  read();
  EXPECT_EQ(confine::GuardedTree::opens(shell, "/dev/full"), EPERM);
}

class UnkeptJobs : public ServiceTest {
 protected:
  /// A job that waits behind another one, and whose keeper is killed.
  void SetUp() override {
    pool::Job all = job_named("all");
    all.request.count = 2;
    first_ = submit(caller_for(other_), all);
    pool::Job waits = job_named("waits");
    waits.outlives_keeper = true;
    process::ChildProcess keeper = process::family();
    waits_ = submit(caller_for(keeper), waits);
    ASSERT_EQ(find(waits_)->state, pool::JobState::waiting);
    ASSERT_FALSE(find(waits_)->unkept);
  }
  /// A process that was killed, and for which nobody has waited, keeps its cgroup.
  void TearDown() override {
    other_.signal(SIGKILL);
    process::await_exit(other_);
    ServiceTest::TearDown();
  }
  bool is_unkept() {
    for (int i = 0; i < 1000 && !find(waits_)->unkept; ++i) {
      service_->step(now_s_ += 0.01);
      ::usleep(5000);
    }
    return find(waits_)->unkept;
  }

  /// The job before it ends.
  void grant() {
    apply(caller_for(other_), pool::End{.job = first_});
    ASSERT_TRUE(ends(first_));
    read_machine();
    ASSERT_EQ(find(waits_)->state, pool::JobState::running);
    service_->step(now_s_ += 1);
    ASSERT_THAT(revived_, testing::ElementsAre(waits_));
  }

  process::ChildProcess other_ = process::family();
  int64_t first_ = 0, waits_ = 0;
};

TEST_F(UnkeptJobs, GetAKeeperOnceTheyAreGrantedTheirDevices) {
  ASSERT_TRUE(is_unkept());
  service_->step(now_s_ += 1);
  EXPECT_THAT(revived_, testing::IsEmpty()) << "it waits as a record";
  starts_ = true;
  grant();
  process::ChildProcess next = process::family();
  EXPECT_TRUE(apply(caller_for(next, 1001), pool::TakeOver{waits_})->error) << "another user";
  const auto taken = apply(caller_for(next), pool::TakeOver{waits_});
  ASSERT_TRUE(taken && !taken->error) << taken->error->message;
  EXPECT_EQ(find(waits_)->keeper, process::process_id(next.pid()));
  EXPECT_EQ(find(waits_)->state, pool::JobState::running);
  EXPECT_FALSE(find(waits_)->unkept);
  process::ChildProcess late = process::family();
  EXPECT_TRUE(apply(caller_for(late), pool::TakeOver{waits_})->error);
}

TEST_F(UnkeptJobs, AreTakenOverFromOutsideOfOtherJobs) {
  ASSERT_TRUE(is_unkept());
  starts_ = true;
  grant();
  process::ChildProcess member = process::family();
  submit(caller_for(member));
  if (job_cgroups(pool_).empty()) GTEST_SKIP() << "may not make cgroups here";
  const auto refused = apply(caller_for(member), pool::TakeOver{waits_});
  ASSERT_TRUE(refused && refused->error);
  EXPECT_THAT(refused->error->message, HasSubstr("start jobs from outside of it"));
}

TEST_F(UnkeptJobs, AreNoneOfThoseWhoseUsersProcessesCannotBeStarted) {
  pool::Job asked = job_named("one");
  asked.outlives_keeper = true;
  process::ChildProcess keeper = process::family();
  Caller within_container = caller_for(keeper);
  within_container.can_be_started = false;
  EXPECT_FALSE(find(submit(within_container, asked))->outlives_keeper);
  EXPECT_TRUE(find(submit(caller_for(keeper), asked))->outlives_keeper);
}

TEST_F(UnkeptJobs, AreFoundByTheNextAgent) {
  open();
  EXPECT_TRUE(find(waits_)->unkept);
  EXPECT_EQ(find(waits_)->state, pool::JobState::waiting);
  service_->step(now_s_ += 1);
  EXPECT_THAT(revived_, testing::IsEmpty());
  starts_ = true;
  grant();
  open();
  EXPECT_EQ(find(waits_)->state, pool::JobState::running);
  service_->step(now_s_ += 1);
  EXPECT_THAT(revived_, testing::ElementsAre(waits_, waits_)) << "it still has none";
}

TEST_F(UnkeptJobs, HoldNothingWhereNoneCanBeStarted) {
  ASSERT_TRUE(is_unkept());
  grant();
  service_->step(now_s_ += 1);
  EXPECT_EQ(find(waits_)->state, pool::JobState::waiting) << "no folder";
  read_machine();
  EXPECT_EQ(find(waits_)->state, pool::JobState::waiting);
  EXPECT_EQ(find(waits_)->why, pool::kUnkept);
  service_->step(now_s_ += 10);
  EXPECT_THAT(revived_, testing::ElementsAre(waits_));
  service_->step(now_s_ += 30);
  EXPECT_THAT(revived_, testing::ElementsAre(waits_, waits_));
}

TEST_F(UnkeptJobs, HoldNothingOnceTheDiskHasRoomAgainAndAreNotTriedWithoutAPause) {
  service_.reset();
  pool::install_faulty_vfs();
  open();
  apply(caller_for(other_), pool::End{.job = first_});
  ASSERT_TRUE(ends(first_));
  read_machine();
  ASSERT_EQ(find(waits_)->state, pool::JobState::running);
  pool::set_on_file_call([](pool::FileCall call) { return call == pool::FileCall::write ? SQLITE_FULL : SQLITE_OK; });
  int rounds = 0;
  for (const double end_s = now_s_ + 3; now_s_ < end_s; ++rounds) {
    if (service_->wants_reading(now_s_)) read_machine();
    service_->step(now_s_);
    now_s_ = std::max(now_s_ + 0.001, service_->next_s(now_s_));
  }
  EXPECT_LT(rounds, 100);
  EXPECT_EQ(find(waits_)->state, pool::JobState::running);
  pool::set_on_file_call({});
  service_->step(now_s_ += 1);
  EXPECT_EQ(find(waits_)->state, pool::JobState::waiting);
}

TEST_F(UnkeptJobs, EndWhereNobodyCanBeStartedForThem) {
  ASSERT_TRUE(is_unkept());
  grant();
  for (int i = 0; i < 100; ++i) service_->step(now_s_ += 10);
  EXPECT_EQ(find(waits_)->state, pool::JobState::ended);
  EXPECT_THAT(find(waits_)->why, HasSubstr("cannot be started: no folder"));
  EXPECT_THAT(revived_, SizeIs(10));
}

TEST_F(UnkeptJobs, AreCancelledAsOthersAre) {
  ASSERT_TRUE(is_unkept());
  EXPECT_FALSE(apply(caller_for(other_), pool::Cancel{{waits_}})->error);
  EXPECT_EQ(find(waits_)->state, pool::JobState::ended);
  for (int i = 0; i < 10; ++i) service_->step(now_s_ += 100);
  EXPECT_THAT(revived_, testing::IsEmpty());
}

}  // namespace
}  // namespace remuda::agent
