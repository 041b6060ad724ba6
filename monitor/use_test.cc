#include "monitor/use.h"

#include <gmock/gmock.h>
#include <random>

namespace remuda::monitor {
namespace {

using testing::DoubleNear;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kWall_s = 1'800'000'000;

Device card(double busy, double watts, std::optional<double> joules = {}) {
  Device device;
  device.id = "card";
  device.kind = DeviceKind::gpu;
  device.power_limit_watts = 400.0;
  device.status.busy = busy;
  device.status.power_watts = watts;
  if (joules) device.status.energy_joules = *joules;
  return device;
}

Inventory machine(Device device) {
  Inventory inventory;
  inventory.devices = {std::move(device)};
  return inventory;
}

pool::Lease lease(int64_t job, double share = 1, double since_s = kWall_s) {
  pool::Lease lease;
  lease.job = job;
  lease.device = "card";
  lease.share = share;
  lease.since_s = since_s;
  return lease;
}

/// A pool in which these devices are held, by jobs of ana.
pool::PoolState pool_of(std::vector<pool::Lease> leases) {
  pool::PoolState state;
  for (const pool::Lease& lease : leases) {
    pool::Job job;
    job.id = lease.job;
    job.user = "ana";
    state.jobs.push_back(std::move(job));
  }
  state.leases = std::move(leases);
  return state;
}

int64_t nobody(int) { return 0; }

TEST(Meter, KnowsOfWaitingWhatTheRunTells) {
  Meter meter;
  pool::PoolState pool = pool_of({lease(7)});
  const auto pass = [&](double from_s, double to_s) {
    for (double s = from_s; s <= to_s; ++s) meter.add(s, kWall_s + s, machine(card(1, 100)), pool, nobody);
  };
  pass(0, 10);
  EXPECT_EQ(meter.alive().begin()->second.waiting_known_s, 0) << "nothing is told";
  pool.jobs[0].run = {.at_s = kWall_s + 10, .parts = {{"card", 0.5, 0.2}, {"card", 0.25, 0.3}, {"other", 0.25, 0.9}}};
  pass(11, 20);
  EXPECT_NEAR(meter.alive().begin()->second.waiting_known_s, 10, 1e-6);
  EXPECT_NEAR(meter.alive().begin()->second.waiting_s, 2, 1e-6);
  pass(21, 200);
  EXPECT_NEAR(meter.alive().begin()->second.waiting_known_s, 89, 2) << "what was told long ago is not known any more";
}

TEST(Effectiveness, IsByTheBestThatTheDeviceCounts) {
  Device device = card(1, 100);
  EXPECT_EQ(effectiveness(device).value(), 0.25) << "of its power limit";
  device.status.dram_active = 0.5;
  EXPECT_EQ(effectiveness(device).value(), 0.5);
  device.status.tensor_active = 0.75;
  EXPECT_EQ(effectiveness(device).value(), 0.75);
  device = card(1, 100);
  device.power_limit_watts = Missing{MissingReason::denied, "no right to read it"};
  EXPECT_EQ(effectiveness(device).missing().detail, "no right to read it") << "being busy is not being effective";
}

TEST(Effectiveness, ByPowerIsNeverAboveBusy) {
  EXPECT_EQ(effectiveness(card(0, 32)).value(), 0) << "an idle card draws power, too";
  EXPECT_EQ(effectiveness(card(0.125, 100)).value(), 0.125);
  Device device = card(1, 100);
  device.status.busy = Missing{MissingReason::unsupported, "the driver does not count it"};
  EXPECT_EQ(effectiveness(device).missing().detail, "the driver does not count it") << "power alone is no work";
  device.status.dram_active = 0.5;
  EXPECT_EQ(effectiveness(device).value(), 0.5);
}

TEST(Meter, AddsUpWhatALeaseUsed) {
  Meter meter;
  meter.add(10, kWall_s, machine(card(0, 100, 1000)), pool_of({lease(7)}), nobody);
  meter.add(11, kWall_s + 1, machine(card(0.5, 300, 1250)), pool_of({lease(7)}), nobody);
  const LeaseUse& use = meter.alive().at({7, "card"});
  EXPECT_EQ(use.held_s, 1);
  EXPECT_EQ(use.busy_s, 0.5);
  EXPECT_EQ(use.energy_joules, 250) << "by the counter, not by the power";
  EXPECT_EQ(use.effective_s, 0.5) << "its power is 0.75 of the limit, and no kernel ran for half of the time";
  EXPECT_EQ(use.user, "ana");
}

TEST(Meter, TakesThePowerWhereTheCounterOfEnergyWasSetBack) {
  Meter meter;
  meter.add(10, kWall_s, machine(card(1, 100, 1000)), pool_of({lease(7)}), nobody);
  meter.add(11, kWall_s + 1, machine(card(1, 300, 50)), pool_of({lease(7)}), nobody);
  EXPECT_EQ(meter.alive().at({7, "card"}).energy_joules, 200) << "the driver was loaded anew";
}

TEST(Meter, CountsNothingFromBeforeTheLease) {
  Meter meter;
  meter.add(10, kWall_s - 1, machine(card(1, 100, 0)), pool_of({}), nobody);
  meter.add(11, kWall_s, machine(card(1, 100, 100)), pool_of({lease(7, 1, kWall_s - 0.25)}), nobody);
  const LeaseUse& use = meter.alive().at({7, "card"});
  EXPECT_EQ(use.held_s, 0.25);
  EXPECT_EQ(use.energy_joules, 25);
}

TEST(Meter, KeepsWhatIsUnknownApart) {
  Meter meter;
  Device blind = card(0, 0);
  blind.status = Status();
  meter.add(0, kWall_s, machine(blind), pool_of({lease(7)}), nobody);
  meter.add(1, kWall_s + 1, machine(blind), pool_of({lease(7)}), nobody);
  meter.add(2, kWall_s + 2, Inventory(), pool_of({lease(7)}), nobody);              // the device is gone
  meter.add(60, kWall_s + 60, machine(card(1, 100)), pool_of({lease(7)}), nobody);  // nobody has looked for long
  const LeaseUse& use = meter.alive().at({7, "card"});
  EXPECT_EQ(use.held_s, 60);
  EXPECT_EQ(use.busy_known_s, 0);
  EXPECT_EQ(use.effective_known_s, 0);
  EXPECT_EQ(use.energy_known_s, 0);
}

TEST(Meter, GivesEndedLeasesOnce) {
  Meter meter;
  meter.add(0, kWall_s, machine(card(1, 100)), pool_of({lease(7), lease(8, 1)}), nobody);
  meter.add(1, kWall_s + 1, machine(card(1, 100)), pool_of({lease(8)}), nobody);
  ASSERT_THAT(meter.alive(), SizeIs(1));
  const auto ended = meter.take_ended();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].job, 7);
  EXPECT_THAT(meter.take_ended(), IsEmpty());
}

TEST(Meter, GoesOnFromWhatAnEarlierProcessHasCounted) {
  Meter meter;
  meter.resume({LeaseUse{.job = 7, .device = "card", .since_s = kWall_s - 100, .held_s = 100, .busy_s = 50}});
  meter.add(0, kWall_s, machine(card(1, 100)), pool_of({lease(7, 1, kWall_s - 100)}), nobody);
  meter.add(1, kWall_s + 1, machine(card(1, 100)), pool_of({lease(7, 1, kWall_s - 100)}), nobody);
  EXPECT_EQ(meter.alive().at({7, "card"}).held_s, 101);
  EXPECT_EQ(meter.alive().at({7, "card"}).busy_s, 51);
}

TEST(Meter, AddsWhatAnEarlierProcessHasCountedToWhatItCountedItself) {
  Meter meter;
  meter.add(0, kWall_s, machine(card(1, 100)), pool_of({lease(7, 1, kWall_s - 100)}), nobody);
  meter.add(1, kWall_s + 1, machine(card(1, 100)), pool_of({lease(7, 1, kWall_s - 100)}), nobody);
  meter.resume({LeaseUse{.job = 7, .device = "card", .since_s = kWall_s - 100, .held_s = 100, .throttled_s = 20}});
  EXPECT_EQ(meter.alive().at({7, "card"}).held_s, 101);
  EXPECT_EQ(meter.alive().at({7, "card"}).throttled_s, 20);
}

/// One that ran on the card.
pool::Job ended(int64_t id, double started_s, double ended_s) {
  pool::Job job;
  job.id = id;
  job.user = "ana";
  job.state = pool::JobState::ended;
  job.started_s = started_s;
  job.ended_s = ended_s;
  job.devices = {"card"};
  return job;
}

TEST(Meter, CountsALeaseUpToItsEnd) {
  Meter meter;
  const Inventory there = machine(card(1, 100));
  meter.add(0, kWall_s, there, pool_of({lease(7)}), nobody);
  meter.add(1, kWall_s + 1, there, pool_of({lease(7)}), nobody);
  const std::vector gone{ended(6, kWall_s - 60, kWall_s - 1), ended(7, kWall_s, kWall_s + 1.6)};
  meter.add(2, kWall_s + 2, there, pool_of({}), nobody, gone);
  meter.add(3, kWall_s + 3, there, pool_of({}), nobody, gone);
  const auto uses = meter.take_ended();
  ASSERT_THAT(uses, SizeIs(1));
  EXPECT_NEAR(uses[0].held_s, 1.6, 1e-5);
  EXPECT_NEAR(uses[0].last_s, kWall_s + 1.6, 1e-5);
  EXPECT_EQ(uses[0].busy_known_s, 1) << "the rest is not known";
}

TEST(Meter, CountsALeaseThatNoReadingHasSeen) {
  Meter meter;
  const Inventory there = machine(card(1, 100));
  meter.add(0, kWall_s, there, pool_of({}), nobody);
  const std::vector gone{ended(7, kWall_s + 0.25, kWall_s + 0.75)};
  meter.add(1, kWall_s + 1, there, pool_of({}), nobody, gone);
  meter.add(2, kWall_s + 2, there, pool_of({}), nobody, gone);
  const auto uses = meter.take_ended();
  ASSERT_THAT(uses, SizeIs(1));
  EXPECT_EQ(uses[0].held_s, 0.5);
  EXPECT_EQ(uses[0].user, "ana");
}

TEST(Meter, CountsALeaseOnceThatBeganWhileThePoolWasRead) {
  Meter meter;
  const Inventory there = machine(card(1, 100));
  meter.add(0, kWall_s, there, pool_of({}), nobody);
  meter.add(1, kWall_s + 1, there, pool_of({lease(7, 1, kWall_s + 1.25)}), nobody);
  meter.add(2, kWall_s + 2, there, pool_of({}), nobody, std::vector{ended(7, kWall_s + 1.25, kWall_s + 1.75)});
  EXPECT_THAT(meter.take_ended(), SizeIs(1));
}

TEST(Meter, DoesNotCountWhatEndedBeforeItsFirstReading) {
  Meter meter;
  meter.add(0, kWall_s, machine(card(1, 100)), pool_of({}), nobody, std::vector{ended(7, kWall_s - 60, kWall_s - 1)});
  EXPECT_THAT(meter.take_ended(), IsEmpty());
}

TEST(Meter, KeepsTheTurnsOfAJobApart) {
  Meter meter;
  const Inventory there = machine(card(1, 100));
  meter.add(0, kWall_s, there, pool_of({lease(7)}), nobody);
  meter.add(1, kWall_s + 1, there, pool_of({lease(7)}), nobody);
  pool::PoolState again = pool_of({lease(7, 1, kWall_s + 1.75)});
  again.jobs[0].earlier = {{kWall_s, kWall_s + 1.5, {"card"}}};
  meter.add(2, kWall_s + 2, there, again, nobody, again.jobs);
  const auto first = meter.take_ended();
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].held_s, 1.5);
  EXPECT_EQ(meter.alive().at({7, "card"}).held_s, 0.25);
}

TEST(Meter, CountsOnWhileTheClockIsSet) {
  Meter meter;
  const pool::PoolState pool = pool_of({lease(7)});
  for (int s = 0; s <= 10; ++s) meter.add(s, kWall_s + s, machine(card(1, 100)), pool, nobody);
  for (int s = 11; s <= 20; ++s) meter.add(s, kWall_s + s - 3600, machine(card(1, 100)), pool, nobody);
  for (int s = 21; s <= 30; ++s) meter.add(s, kWall_s + s + 86400, machine(card(1, 100)), pool, nobody);
  EXPECT_EQ(meter.alive().at({7, "card"}).held_s, 30);
  EXPECT_EQ(meter.alive().at({7, "card"}).busy_s, 30);
}

TEST(Meter, KnowsALeaseWhoseTimesFollowTheClock) {
  Meter meter;
  pool::PoolState pool = pool_of({lease(7)});
  pool::Job job;
  job.id = 7;
  job.state = pool::JobState::running;
  job.clock = {"boot", 100};
  pool.jobs = {job};
  for (int s = 0; s <= 10; ++s) meter.add(s, kWall_s + s, machine(card(1, 100)), pool, nobody);
  pool.jobs[0].clock.ahead_s += 3600;
  pool.leases[0].since_s += 3600;
  for (int s = 11; s <= 20; ++s) meter.add(s, kWall_s + s + 3600, machine(card(1, 100)), pool, nobody);
  EXPECT_EQ(meter.alive().at({7, "card"}).held_s, 20);
  EXPECT_TRUE(meter.take_ended().empty());
}

TEST(Meter, GivesJobsThatShareADeviceWhatTheirProcessesUsed) {
  Device device = card(1, 100, 0);
  device.status.processes =
      std::vector<Process>{{.pid = 1, .memory_bytes = 100, .busy = 0.6}, {.pid = 2, .memory_bytes = 50, .busy = 0.2}};
  const auto job_of = [](int pid) -> int64_t { return pid == 1 ? 7 : 8; };
  const pool::PoolState leases = pool_of({lease(7, 0.5), lease(8, 0.5)});
  Meter meter;
  meter.add(0, kWall_s, machine(device), leases, job_of);
  device.status.energy_joules = 80.0;
  meter.add(1, kWall_s + 1, machine(device), leases, job_of);
  const LeaseUse &first = meter.alive().at({7, "card"}), &second = meter.alive().at({8, "card"});
  EXPECT_DOUBLE_EQ(first.busy_s, 0.6);
  EXPECT_DOUBLE_EQ(first.energy_joules, 60);
  EXPECT_DOUBLE_EQ(second.energy_joules, 20);
  EXPECT_EQ(first.memory_peak_bytes, 100);

  device.status.processes = std::vector<Process>{{.pid = 1, .memory_bytes = 100}};
  meter.add(2, kWall_s + 2, machine(device), leases, job_of);
  EXPECT_EQ(meter.alive().at({7, "card"}).busy_known_s, 1) << "the device's own reading says nothing of one job";
}

TEST(Meter, DoesNotKnowWhoseAProcessIsWhereAJobHasNoCgroup) {
  Device device = card(1, 100, 0);
  device.status.processes = std::vector<Process>{{.pid = 1, .busy = 0.6}, {.pid = 2, .busy = 0.2}};
  pool::PoolState pool = pool_of({lease(7, 0.5), lease(8, 0.5)});
  pool.jobs[1].cgroup = "/sys/fs/cgroup/remuda.slice/remuda-ab-8";
  const auto job_of = [](int pid) -> int64_t { return pid == 2 ? 8 : 0; };
  Meter meter;
  const LeaseUses& uses = meter.alive();
  meter.add(0, kWall_s, machine(device), pool, job_of);
  meter.add(1, kWall_s + 1, machine(device), pool, job_of);
  EXPECT_EQ(uses.at({7, "card"}).busy_known_s, 0) << "the process of no known job may be of this one";
  EXPECT_EQ(uses.at({7, "card"}).energy_known_s, 0);
  EXPECT_EQ(uses.at({8, "card"}).busy_known_s, 1);
  EXPECT_DOUBLE_EQ(uses.at({8, "card"}).busy_s, 0.2);
  device.status.processes = std::vector<Process>{{.pid = 1, .busy = 0.0}, {.pid = 2, .busy = 0.2}};
  meter.add(2, kWall_s + 2, machine(device), pool, job_of);
  EXPECT_EQ(uses.at({7, "card"}).busy_known_s, 1) << "whosever it is, it does nothing";
}

TEST(Meter, DoesNotTakeAListWithoutProcessesOfABusyDeviceForIdle) {
  Device device = card(0.9, 100, 0);
  device.status.processes = std::vector<Process>{};
  const pool::PoolState pool = pool_of({lease(7, 0.5)});
  Meter meter;
  meter.add(0, kWall_s, machine(device), pool, nobody);
  meter.add(1, kWall_s + 1, machine(device), pool, nobody);
  EXPECT_EQ(meter.alive().at({7, "card"}).busy_known_s, 0);
  device.status.busy = 0.0;
  meter.add(2, kWall_s + 2, machine(device), pool, nobody);
  EXPECT_EQ(meter.alive().at({7, "card"}).busy_known_s, 1);
}

// Bursts of 100 ms at random, known 20 times a second, read once a second: as a driver that means busy time over the
// last second and gives the power of the moment. Two tolerances: 2 % of what the counter of energy and the busy time
// give, 5 % of what powers of moments do, whose error falls with the root of the number of readings (here 3 standard
// deviations).
TEST(Meter, IsNearTheIntegralOfBursts) {
  for (const bool has_counter : {true, false}) {
    std::mt19937_64 random(20);
    constexpr int kSeconds = 7200, kPerSecond = 20;
    Meter meter;
    double busy_s = 0, joules = 0;
    int left = 0;
    for (int second = 0; second <= kSeconds; ++second) {
      double busy = 0, watts = 0;
      for (int i = 0; i < kPerSecond; ++i) {
        if (left == 0 && random() % 10 == 0) left = 2;
        const bool is_busy = left > 0;
        left -= is_busy;
        watts = is_busy ? 350 : 60;
        if (second > 0) joules += watts / kPerSecond;
        busy += is_busy / static_cast<double>(kPerSecond);
      }
      if (second > 0) busy_s += busy;
      meter.add(second, kWall_s + second,
                machine(card(busy, watts, has_counter ? std::optional(joules) : std::nullopt)), pool_of({lease(7)}),
                nobody);
    }
    const LeaseUse& use = meter.alive().at({7, "card"});
    EXPECT_THAT(use.busy_s, DoubleNear(busy_s, 0.02 * busy_s));
    EXPECT_THAT(use.energy_joules, DoubleNear(joules, (has_counter ? 0.02 : 0.05) * joules));
  }
}

}  // namespace
}  // namespace remuda::monitor
