#include "monitor/watcher.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"

namespace remuda::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr double kBegin_s = 1'800'000'000;

Inventory busy_machine(double busy) {
  Device device;
  device.id = "card";
  device.kind = DeviceKind::gpu;
  device.status.busy = busy;
  Inventory inventory;
  inventory.devices = {device, Device{.id = "cpu:0"}};
  return inventory;
}

pool::PoolState held(bool is_held = true) {
  pool::Job job;
  job.id = 7;
  job.user = "ana";
  pool::PoolState pool;
  pool.jobs = {job};
  if (is_held) pool.leases = {{.job = 7, .device = "card", .since_s = kBegin_s}};
  return pool;
}

Watcher open(const ScratchFolder& folder) {
  auto watcher = Watcher::open(folder.path());
  if (!watcher) throw std::runtime_error(watcher.error().message);
  return std::move(*watcher);
}

TEST(Watcher, KeepsTheHistoryOfGpusAndTheUseOfLeases) {
  const ScratchFolder folder;
  {
    Watcher watcher = open(folder);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(watcher.take({100.0 + i, kBegin_s + i, busy_machine(0.5), held()}));
    EXPECT_THAT(watcher.history().devices().value(), ElementsAre("card")) << "a CPU has no readings";
    ASSERT_TRUE(watcher.write());
  }
  Watcher watcher = open(folder);
  ASSERT_TRUE(watcher.take({7, kBegin_s + 5, busy_machine(1), held()}));
  ASSERT_TRUE(watcher.take({8, kBegin_s + 6, busy_machine(1), held()}));
  const LeaseUse& use = watcher.moment().uses.at({7, "card"});
  EXPECT_EQ(use.held_s, 5) << "four seconds before, one after; between them knows_none watched";
  EXPECT_EQ(use.busy_s, 3);
}

TEST(Watcher, KeepsTheUseOfPodsBesideThatOfLeases) {
  const ScratchFolder folder;
  pool::PoolState pool = held(false);
  pool.allocations = {{"card", "Kubernetes", "", "", {{"ml", "train-0", "u-1", "main"}}}};
  {
    Watcher watcher = open(folder);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(watcher.take({100.0 + i, kBegin_s + i, busy_machine(0.5), pool}));
    EXPECT_EQ(metrics_text(watcher.moment()).find("remuda_lease"), std::string::npos) << "it has no lease";
    ASSERT_TRUE(watcher.write());
  }
  Watcher watcher = open(folder);  // it is the same pod, and counted on
  for (int i = 10; i < 13; ++i) ASSERT_TRUE(watcher.take({100.0 + i, kBegin_s + i, busy_machine(1), pool}));
  ASSERT_TRUE(watcher.write());
  const auto uses = watcher.uses().read(kBegin_s).value();
  ASSERT_THAT(uses, SizeIs(2));
  EXPECT_EQ(uses[0].pod, "ml/train-0");
  EXPECT_EQ(uses[0].job, uses[1].job);
  EXPECT_EQ(uses[0].held_s + uses[1].held_s, 6);
  EXPECT_EQ(uses[0].busy_s + uses[1].busy_s, 4);
}

TEST(Watcher, KeepsHowLongDevicesWaitAsTheirRunsTell) {
  const ScratchFolder folder;
  Watcher watcher = open(folder);
  pool::PoolState pool = held();
  ASSERT_TRUE(watcher.take({100, kBegin_s, busy_machine(1), pool}));
  pool.jobs[0].run = {.at_s = kBegin_s, .parts = {{.device = "card", .waiting = 0.25}}};
  ASSERT_TRUE(watcher.take({101, kBegin_s + 1, busy_machine(1), pool}));
  pool.jobs.push_back({.id = 8, .run = {.at_s = kBegin_s, .parts = {{.device = "card", .waiting = 0.125}}}});
  pool.leases.push_back({.job = 8, .device = "card", .since_s = kBegin_s});
  ASSERT_TRUE(watcher.take({102, kBegin_s + 2, busy_machine(1), pool}));
  ASSERT_TRUE(watcher.take({103, kBegin_s + 3, busy_machine(1), held(false)}));
  const Series series = watcher.history().read("card", kBegin_s, kBegin_s + 4, 100).value();
  ASSERT_EQ(series.slots.size(), 4U);
  EXPECT_TRUE(std::isnan(series.slots[0][Measure::waiting])) << "nobody has told";
  EXPECT_EQ(series.slots[1][Measure::waiting], 0.25F);
  EXPECT_EQ(series.slots[2][Measure::waiting], 0.125F) << "one of two waits less";
  EXPECT_TRUE(std::isnan(series.slots[3][Measure::waiting]));
}

TEST(Watcher, EndsNoLeaseWhileTheAgentIsSilent) {
  const ScratchFolder folder;
  Watcher watcher = open(folder);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(watcher.take({100.0 + i, kBegin_s + i, busy_machine(0.5), held()}));
  for (int i = 3; i < 20; ++i)
    ASSERT_TRUE(watcher.take({100.0 + i, kBegin_s + i, busy_machine(1), {}, 0, {}, {}, {}, false}));
  EXPECT_EQ(watcher.moment().uses.at({7, "card"}).held_s, 2) << "who holds it meanwhile is not known";
  EXPECT_FALSE(watcher.moment().knows_pool());
  const Series series = watcher.history().read("card", kBegin_s, kBegin_s + 20, 100).value();
  ASSERT_EQ(series.slots.size(), 20U) << "its readings go on";
  EXPECT_EQ(series.slots[10][Measure::busy], 1);
  for (int i = 20; i < 22; ++i) ASSERT_TRUE(watcher.take({100.0 + i, kBegin_s + i, busy_machine(1), held()}));
  const LeaseUse& use = watcher.moment().uses.at({7, "card"});
  EXPECT_EQ(use.held_s, 21) << "it was held all the time, as is known now";
  EXPECT_EQ(use.busy_known_s, 3);
}

TEST(Watcher, KeepsTheUseOfALeaseThatHasEnded) {
  const ScratchFolder folder;
  Watcher watcher = open(folder);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(watcher.take({double(i), kBegin_s + i, busy_machine(1), held()}));
  for (int i = 3; i < 15; ++i) ASSERT_TRUE(watcher.take({double(i), kBegin_s + i, busy_machine(0), held(false)}));
  EXPECT_THAT(watcher.moment().uses, SizeIs(0));
  const auto uses = watcher.uses().read(kBegin_s).value();
  ASSERT_THAT(uses, SizeIs(1));
  EXPECT_EQ(uses[0].busy_s, 2);
  EXPECT_EQ(uses[0].user, "ana");
}

TEST(Watcher, DoesNotWriteOverWhatItCouldNotRead) {
  const ScratchFolder folder;
  {
    Watcher watcher = open(folder);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(watcher.take({100.0 + i, kBegin_s + i, busy_machine(1), held()}));
    ASSERT_TRUE(watcher.write());
  }
  Watcher watcher = open(folder);
  auto database = sqlite::Database::open(folder.path("history.db"));
  ASSERT_TRUE((*database)->execute("ALTER TABLE use RENAME TO away"));
  EXPECT_FALSE(watcher.take({7, kBegin_s + 5, busy_machine(1), held()}));
  EXPECT_FALSE(watcher.take({8, kBegin_s + 6, busy_machine(1), held()}));
  EXPECT_TRUE(watcher.write()) << "the history of devices is written all the same";
  ASSERT_TRUE((*database)->execute("ALTER TABLE away RENAME TO use"));
  ASSERT_TRUE(watcher.take({9, kBegin_s + 7, busy_machine(1), held()}));
  EXPECT_EQ(watcher.moment().uses.at({7, "card"}).held_s, 4 + 2);
  ASSERT_TRUE(watcher.write());
  EXPECT_EQ(watcher.uses().read(0).value()[0].held_s, 4 + 2);
}

TEST(Watcher, GoesOnWhereOneRecordCannotBeRead) {
  const ScratchFolder folder;
  {
    Watcher watcher = open(folder);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(watcher.take({100.0 + i, kBegin_s + i, busy_machine(1), held()}));
    ASSERT_TRUE(watcher.write());
    ASSERT_TRUE(watcher.uses().write({{.job = 3, .device = "card", .since_s = 1, .last_s = kBegin_s}}));
  }
  auto database = sqlite::Database::open(folder.path("history.db"));
  ASSERT_TRUE((*database)->execute("UPDATE use SET record = '' WHERE job = 3"));
  Watcher watcher = open(folder);
  EXPECT_THAT(watcher.take({7, kBegin_s + 5, busy_machine(1), held()}).error().message, HasSubstr("by job 3"));
  ASSERT_TRUE(watcher.take({8, kBegin_s + 6, busy_machine(1), held()}));
  EXPECT_EQ(watcher.moment().uses.at({7, "card"}).held_s, 5);
}

TEST(Watcher, HasItsFolderForItself) {
  const ScratchFolder folder;
  const Watcher watcher = open(folder);
  EXPECT_THAT(Watcher::open(folder.path()).error().message,
              HasSubstr("another process keeps the history in " + folder.path()));
}

}  // namespace
}  // namespace remuda::monitor
