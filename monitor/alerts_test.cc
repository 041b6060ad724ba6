#include "monitor/alerts.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"
#include "monitor/attention.h"
#include "monitor/idle_jobs.h"
#include "monitor/testing/alerts_test.h"

namespace remuda::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(AlertsTest, ADeviceThatIsHeldAndIdleForHalfAnHour) {
  hold();
  device().status.busy = 0.01;
  watch(29 * 60);
  EXPECT_THAT(rules(), IsEmpty());
  watch(2 * 60);
  ASSERT_THAT(rules(), ElementsAre("held and idle"));
  const Alert alert = alerts_.active()[0];
  EXPECT_EQ(alert.label, "gpu:0");
  EXPECT_EQ(alert.id.size(), 6U);
  EXPECT_EQ(alert.value, "busy 1 % of 30 min");
  EXPECT_EQ(alert.limit, "5 %");
  EXPECT_EQ(alert.text, "ana (job 7) holds gpu:0, and next to nothing runs there");
  EXPECT_EQ(alert.command, "remuda show 7");
  device().status.busy = 1;
  watch(3 * 60);
  EXPECT_THAT(rules(), IsEmpty());
}

TEST_F(AlertsTest, OneThatIsLittleUsed) {
  hold();
  device().status.busy = 0.2;
  watch(59 * 60);
  EXPECT_THAT(rules(), IsEmpty()) << "so it is for a while whenever work begins";
  watch(2 * 60);
  ASSERT_THAT(rules(), ElementsAre("underused"));
  EXPECT_EQ(alerts_.active()[0].text, "ana (job 7) holds gpu:0, and uses little of it");
  device().status.busy = 0.5;
  watch(20 * 60);
  EXPECT_THAT(rules(), IsEmpty());
  device().status.busy = 0;
  watch(31 * 60);
  EXPECT_THAT(rules(), ElementsAre("held and idle")) << "and not both";
}

TEST_F(AlertsTest, OfAHundredWhoHoldPartsOfADeviceTheFirstAreNamed) {
  hold();
  pool_.jobs[0].user = std::string(32, 'a');
  pool_.leases.resize(100, pool_.leases[0]);
  device().status.busy = 0;
  watch(31 * 60);
  ASSERT_THAT(rules(), ElementsAre("held and idle"));
  EXPECT_THAT(alerts_.active()[0].text, testing::HasSubstr("a (job 7) and 92 more holds gpu:0"));
  const ScratchFolder folder;
  ASSERT_TRUE(write_alerts(folder.path(), alerts_.active(), now_s_));
  const auto read = read_alerts(folder.path());
  ASSERT_TRUE(read) << read.error().message;
}

TEST_F(AlertsTest, AnIdleDeviceSaysWhyAndWhatComesOfIt) {
  hold();
  pool_.jobs[0].state = pool::JobState::running;
  device().status.busy = 0;
  device().status.processes = std::vector<Process>{};
  IdleJobs idle(1800, [](const pool::Job&) { return std::vector<int>(); });
  idle.look(0, kFirst_s, machine_, pool_);
  watch(30 * 60);
  alerts_.take({machine_, pool_, uses_, 0, {}, {}, &idle}, now_s_ - kFirst_s, now_s_ + ahead_s_);
  ASSERT_THAT(rules(), ElementsAre("held and idle"));
  EXPECT_EQ(alerts_.active()[0].text,
            "ana (job 7) holds gpu:0, and next to nothing runs there: no process of the job uses a GPU");
  pool_.jobs[0].idle = {pool::IdleStep::warned, 1, 0,
                        "gpu:0 busy for 0 % of 10 min; unless work begins it ends in 5 min"};
  watch(1);
  EXPECT_EQ(alerts_.active()[0].text,
            "ana (job 7) holds gpu:0: gpu:0 busy for 0 % of 10 min; unless work begins it ends in 5 min");
}

TEST_F(AlertsTest, ADeviceWithALeaseThatStrangersUse) {
  hold();
  device().status.busy = 1;
  const auto strange = [this](double seconds) {
    for (const double end_s = now_s_ + seconds; now_s_ < end_s; ++now_s_)
      alerts_.take({machine_, pool_, uses_, 0, {}, {"GPU-1"}}, now_s_ - kFirst_s, now_s_ + ahead_s_);
  };
  strange(299);
  EXPECT_THAT(rules(), IsEmpty());
  strange(5);
  EXPECT_THAT(rules(), ElementsAre("foreign process"));
}

TEST_F(AlertsTest, OneThatWorkedBrieflyAndThenSleptIsIdleToo) {
  hold();
  watch(35 * 60, [this](double s) { device().status.busy = s < 5 * 60 ? 1 : 0; });
  EXPECT_THAT(rules(), ElementsAre("held and idle"));
}

TEST_F(AlertsTest, OneThatNobodyHoldsOrOfWhichNothingIsKnownIsNotIdle) {
  device().status.busy = 0;
  watch(40 * 60);
  EXPECT_THAT(rules(), IsEmpty()) << "nobody holds it";
  hold();
  watch(20 * 60);
  EXPECT_THAT(rules(), IsEmpty()) << "it is held for 20 minutes only";
  pool_.leases[0].job = 8;
  device().status.busy = Missing{MissingReason::unsupported, "not counted"};
  watch(40 * 60);
  EXPECT_THAT(rules(), IsEmpty()) << "nothing is known";
}

TEST_F(AlertsTest, WhatWasNotWatchedIsNotIdle) {
  hold();
  device().status.busy = 0;
  watch(16 * 60);
  now_s_ += 10 * 60;
  watch(16 * 60);
  EXPECT_THAT(rules(), IsEmpty());
}

TEST_F(AlertsTest, ThrottlingThatLasts) {
  device().status.throttle = std::vector<std::string>{"thermal", "idle"};
  watch(59);
  EXPECT_THAT(rules(), IsEmpty());
  device().status.throttle = std::vector<std::string>{"idle"};
  watch(1);
  device().status.throttle = std::vector<std::string>{"thermal"};
  watch(59);
  EXPECT_THAT(rules(), IsEmpty()) << "it was interrupted";
  watch(10);
  EXPECT_THAT(rules(), ElementsAre("throttled"));
}

TEST_F(AlertsTest, ErrorsAndWhatTheDriverAsksFor) {
  device().status.xid = 79;
  device().status.recovery_action = RecoveryAction::reset;
  watch(1);
  EXPECT_THAT(rules(), ElementsAre("device error", "needs recovery"));
  EXPECT_EQ(alerts_.active()[0].command, "remuda drain gpu:0 --reason 'error 79'");
}

TEST_F(AlertsTest, MemoryThatIsAlmostFullAndRises) {
  watch(140, [this](double s) { device().status.memory_used_bytes = 960 + static_cast<int64_t>(s / 10); });
  EXPECT_THAT(rules(), ElementsAre("memory almost full"));
  watch(1200, [this](double) { device().status.memory_used_bytes = 980; });
  EXPECT_THAT(rules(), IsEmpty()) << "a job that has taken all it wants";
}

TEST_F(AlertsTest, MemoryThatGoesUpAndDownAtItsLimitIsOneAlert) {
  int begun = 0, ended = 0;
  bool is_so = false;
  watch(1800, [&](double s) {
    const bool is_low = s > 130 && static_cast<int>(s) % 20 < 10;
    device().status.memory_used_bytes = is_low ? 940 : 960 + static_cast<int64_t>(std::min(s, 130.0) / 10 + s / 200);
    const bool was_so = std::exchange(is_so, !rules().empty());
    begun += is_so && !was_so, ended += was_so && !is_so;
  });
  EXPECT_EQ((std::pair{begun, ended}), (std::pair{1, 0}));
  watch(2, [this](double) { device().status.memory_used_bytes = 929; });
  EXPECT_THAT(rules(), IsEmpty());
  watch(700, [this](double) { device().status.memory_used_bytes = 945; });
  EXPECT_THAT(rules(), IsEmpty()) << "it begins above 95 % only";
  watch(140, [this, used = 9510](double) mutable { device().status.memory_used_bytes = ++used / 10; });
  EXPECT_THAT(rules(), ElementsAre("memory almost full")) << "it rises again, if less high than before";
}

TEST_F(AlertsTest, AClockThatIsSetForwardRaisesNone) {
  hold(kFirst_s + 86400);
  device().status.busy = 0;
  device().status.throttle = std::vector<std::string>{"thermal"};
  device().status.memory_used_bytes = 960;
  without_lease_ = {"GPU-2"};
  pool_.jobs[0].run = {.parts = {{.device = "GPU-1", .waiting = 0.5}}, .checkpoint_every_s = 60};
  const auto go_on = [this](double) {
    pool_.jobs[0].run.at_s = now_s_ + ahead_s_, ++pool_.jobs[0].run.checkpoint_age_s;
  };
  watch(30, go_on);
  ahead_s_ = 3600;
  watch(20, go_on);
  EXPECT_THAT(rules(), IsEmpty());
  ahead_s_ = 2 * 86400;
  watch(5, go_on);
  EXPECT_THAT(rules(), IsEmpty()) << "the pool has a minute to end what is beyond its limit now";
  watch(10, go_on);
  EXPECT_THAT(rules(), ElementsAre("throttled")) << "after a minute by any clock";
  ahead_s_ = -86400;
  watch(60, go_on);
  EXPECT_THAT(rules(), ElementsAre("throttled"));
}

TEST_F(AlertsTest, ANarrowLinkOfABusyDevice) {
  device().status.pcie_width = 8;
  watch(700);
  EXPECT_THAT(rules(), IsEmpty()) << "idle devices narrow it";
  device().status.busy = 1;
  watch(601);
  EXPECT_THAT(rules(), ElementsAre("narrow link"));
}

TEST_F(AlertsTest, LeasesBeyondTheirEndAndUseWithoutOne) {
  hold(kFirst_s + 10);
  watch(70);
  EXPECT_THAT(rules(), IsEmpty());
  watch(2);
  EXPECT_THAT(rules(), ElementsAre("lease overrun"));
  pool_ = {};
  without_lease_ = {"GPU-1"};
  watch(299);
  EXPECT_THAT(rules(), IsEmpty());
  watch(2);
  EXPECT_THAT(rules(), ElementsAre("used without a lease"));
}

TEST_F(AlertsTest, ADeviceThatIsGoneHasNone) {
  device().status.xid = 79;
  watch(1);
  machine_.devices.clear();
  watch(1);
  EXPECT_THAT(rules(), IsEmpty());
}

TEST_F(AlertsTest, OneThatIsGoneWhileAJobHoldsItIsLost) {
  hold();
  device().status.xid = 79;
  watch(1);
  const std::vector<Device> there = std::exchange(machine_.devices, {});
  watch(3);
  EXPECT_THAT(rules(), ElementsAre("device error")) << "one reading may fail";
  watch(5);
  ASSERT_THAT(rules(), ElementsAre("device error", "device lost"));
  EXPECT_EQ(alerts_.active()[1].text, "gpu:0 is gone from the machine, and job 7 holds it");
  pool_ = {};
  watch(60);
  EXPECT_THAT(rules(), ElementsAre("device error", "device lost")) << "its job's end does not bring it back";
  machine_.devices = there;
  device().status.xid = 0;
  device().status.busy = 0;
  watch(1);
  EXPECT_THAT(rules(), IsEmpty());
}

TEST_F(AlertsTest, OneThatNoLongerAnswersIsLost) {
  device().status.busy = Missing{MissingReason::lost, "it is lost"};
  watch(1);
  ASSERT_THAT(rules(), ElementsAre("device lost"));
  EXPECT_EQ(alerts_.active()[0].text, "gpu:0 no longer answers");
  device().status.busy = 0.5;
  watch(1);
  EXPECT_THAT(rules(), IsEmpty());
}

TEST_F(AlertsTest, WhatIsNotKnownEndsNone) {
  hold();
  device().status.busy = 0;
  device().status.xid = 79;
  device().status.recovery_action = RecoveryAction::reset;
  device().status.throttle = std::vector<std::string>{"thermal"};
  device().memory_bytes = 1'000'000;
  watch(31 * 60, [this](double s) { device().status.memory_used_bytes = 960'000 + static_cast<int64_t>(s); });
  const auto before = rules();
  ASSERT_THAT(before,
              ElementsAre("device error", "held and idle", "memory almost full", "needs recovery", "throttled"));
  device().status = Status();
  watch(40 * 60);
  EXPECT_EQ(rules(), before);
  pool_ = {};
  watch(1);
  EXPECT_THAT(rules(), ElementsAre("device error", "memory almost full", "needs recovery", "throttled"))
      << "nobody holds it any more";
}

TEST_F(AlertsTest, AnotherErrorOfTheSameDeviceIsAnotherAlert) {
  device().status.xid = 48;
  watch(1);
  const std::string first = alerts_.active()[0].id;
  device().status.xid = 79;
  watch(1);
  ASSERT_THAT(rules(), ElementsAre("device error", "device error"));
  EXPECT_EQ(alerts_.active()[0].id, first);
  EXPECT_NE(alerts_.active()[1].id, first);
  EXPECT_EQ(alerts_.active()[1].value, "79");
  device().status.xid = 0;
  watch(1);
  EXPECT_THAT(rules(), IsEmpty());
}

TEST_F(AlertsTest, TheTimeOfOneJobIsNotThatOfTheNext) {
  hold();
  device().status.busy = 0;
  const auto pass_on = [this](int64_t job) { pool_.jobs[0].id = pool_.leases[0].job = job; };
  watch(20 * 60);
  pass_on(8);
  watch(20 * 60);
  EXPECT_THAT(rules(), IsEmpty());
  watch(11 * 60);
  ASSERT_THAT(rules(), ElementsAre("held and idle"));
  pass_on(9);
  watch(1);
  EXPECT_THAT(rules(), IsEmpty()) << "job 8 has ended";
  pool_.leases.push_back({.job = 10, .device = "GPU-1", .since_s = now_s_});
  watch(31 * 60);
  EXPECT_THAT(rules(), ElementsAre("held and idle")) << "one that joins does not make the other one younger";
}

TEST_F(AlertsTest, AClockThatWasFarAheadDelaysNone) {
  device().status.throttle = std::vector<std::string>{"thermal"};
  ahead_s_ = 1e6;
  watch(10);
  ahead_s_ = 0;
  watch(60);
  ASSERT_THAT(rules(), ElementsAre("throttled"));
  EXPECT_EQ(alerts_.active()[0].since_s, kFirst_s + 10);
}

}  // namespace
}  // namespace remuda::monitor
