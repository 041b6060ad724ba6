// Alerts of runs, and of the disks.
#include <gmock/gmock.h>

#include "monitor/testing/alerts_test.h"

namespace remuda::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(AlertsTest, ARunThatHasKeptNothingOfItselfForLong) {
  hold();
  pool::RunNotice& run = pool_.jobs[0].run;
  run.checkpoint_every_s = 600;
  const auto grow_old = [&](double) { run.at_s = now_s_, ++run.checkpoint_age_s; };
  watch(1260, grow_old);
  EXPECT_THAT(rules(), IsEmpty()) << "a minute's grace";
  watch(2, grow_old);
  ASSERT_THAT(rules(), ElementsAre("checkpoint too old"));
  Alert alert = alerts_.active()[0];
  EXPECT_EQ(alert.device, "GPU-1");
  EXPECT_EQ(alert.label, "gpu:0");
  EXPECT_EQ(alert.value, "21 min without");
  EXPECT_EQ(alert.limit, "20 min, twice its interval");
  EXPECT_EQ(alert.text, "ana's job 7 has written no checkpoint for 21 min, and wants one every 10 min");
  EXPECT_EQ(alert.command, "remuda show 7");
  watch(600);
  EXPECT_THAT(rules(), ElementsAre("checkpoint too old")) << "it has become silent";
  run.checkpoint_age_s = 0, run.checkpoint_step = 40;
  watch(1, grow_old);
  EXPECT_THAT(rules(), IsEmpty());
  pool_.jobs[0].log = "/tmp/log";
  watch(1263, grow_old);
  ASSERT_THAT(rules(), ElementsAre("checkpoint too old"));
  alert = alerts_.active()[0];
  EXPECT_EQ(alert.value, "21 min old");
  EXPECT_EQ(alert.command, "remuda logs 7");
}

TEST_F(AlertsTest, OfARunThatHasBecomeSilentNoCheckpointIsCalledTooOld) {
  hold();
  pool::RunNotice& run = pool_.jobs[0].run;
  run.at_s = now_s_;
  watch(80);
  run.checkpoint_every_s = 600, run.checkpoint_age_s = 6000;  // for 10 s only until it counts as silent
  watch(300);
  EXPECT_THAT(rules(), IsEmpty());
}

TEST_F(AlertsTest, ARunThatWantsNoCheckpointOrTakesLongAsAnExceptionIsLeftAlone) {
  hold();
  pool::RunNotice& run = pool_.jobs[0].run;
  run.checkpoint_age_s = 1e6;
  const auto tell = [&](double) { run.at_s = now_s_ + ahead_s_; };
  watch(300, tell);
  EXPECT_THAT(rules(), IsEmpty()) << "it wants none";
  run.checkpoint_every_s = 1;
  watch(50, tell);
  run.checkpoint_age_s = 1;
  watch(10, tell);
  run.checkpoint_age_s = 10;
  watch(50, tell);
  EXPECT_THAT(rules(), IsEmpty());
  ahead_s_ += 86400;  // the clock is set
  run.checkpoint_age_s = 1;
  watch(100, tell);
  EXPECT_THAT(rules(), IsEmpty());
}

TEST_F(AlertsTest, ARunWhoseDevicesWaitForEachOther) {
  hold();
  pool_.jobs[0].run.parts = {{.device = "GPU-1", .waiting = 0.5}, {.device = "GPU-2", .waiting = 0.02}};
  const auto report = [this](double) { pool_.jobs[0].run.at_s = now_s_; };
  watch(299, report);
  EXPECT_THAT(rules(), IsEmpty());
  watch(2, report);
  ASSERT_THAT(rules(), ElementsAre("run waits"));
  const Alert alert = alerts_.active()[0];
  EXPECT_EQ(alert.label, "gpu:0");
  EXPECT_EQ(alert.value, "26 % of its devices' time");
  EXPECT_EQ(alert.limit, "10 %");
  EXPECT_EQ(alert.text, "the devices of ana's job 7 wait for each other or for others, GPU-2 least");
  EXPECT_EQ(alert.command, "remuda show 7");
  watch(600);
  EXPECT_THAT(rules(), ElementsAre("run waits")) << "it has become silent";
  pool_.jobs[0].run.parts[0].waiting = 0.1;
  watch(1, report);
  EXPECT_THAT(rules(), IsEmpty());
  pool_.jobs[0].run.parts[0].waiting = 0.5;
  watch(301, report);
  EXPECT_THAT(rules(), ElementsAre("run waits"));
  pool_ = {};
  watch(1);
  EXPECT_THAT(rules(), IsEmpty());
}

TEST_F(AlertsTest, ADiskThatIsAlmostFull) {
  std::vector<DiskRoom> disks{{"/var/lib/remuda", int64_t{100} << 30, int64_t{9} << 30}};
  const auto look = [&](double seconds) {
    for (const double end_s = now_s_ + seconds; now_s_ < end_s; ++now_s_)
      alerts_.take({.machine = machine_, .pool = pool_, .uses = uses_, .disks = disks}, now_s_ - kFirst_s,
                   now_s_ + ahead_s_);
  };
  look(59);
  EXPECT_THAT(rules(), IsEmpty());
  look(2);
  ASSERT_THAT(rules(), ElementsAre("disk almost full"));
  const Alert alert = alerts_.active()[0];
  EXPECT_EQ(std::pair(alert.device, alert.label),
            std::pair(std::string("/var/lib/remuda"), std::string("/var/lib/remuda")));
  EXPECT_EQ(alert.value, "9.0 GiB free, 9 %");
  EXPECT_EQ(alert.limit, "10 %");
  EXPECT_EQ(alert.command, "df -h /var/lib/remuda");
  disks[0].free_bytes = int64_t{11} << 30;
  look(1);
  EXPECT_THAT(rules(), IsEmpty());
}

}  // namespace
}  // namespace remuda::monitor
