#include "monitor/idle_jobs.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace remuda::monitor {
namespace {

constexpr double kWindow_s = 600;

class IdleJobsTest : public testing::Test {
 protected:
  IdleJobsTest() {
    for (const char* id : {"GPU-1", "GPU-2", "cpu:0"}) {
      Device device;
      device.id = id;
      device.kind = device.id == "cpu:0" ? DeviceKind::cpu : DeviceKind::gpu;
      device.status.processes = std::vector<Process>{};
      machine_.devices.push_back(device);
    }
    pool::Job job;
    job.id = 7;
    job.state = pool::JobState::running;
    pool_.jobs = {job};
  }
  void hold(const char* device, double share = 1, double since_s = 0) {
    pool_.leases.push_back({.job = 7, .device = device, .share = share, .since_s = since_s});
  }
  Status& status(size_t device) { return machine_.devices[device].status; }
  void watch(double seconds = kWindow_s) {
    for (const double end_s = now_s_ + seconds; now_s_ <= end_s; now_s_ += 10)
      jobs_.look(now_s_, now_s_, machine_, pool_);
  }
  double busy() const { return jobs_.find(7) ? jobs_.find(7)->busy() : -2; }

  Inventory machine_;
  pool::PoolState pool_;
  std::vector<int> members_;
  /// Of job 7; those of job 8, if there is one, are `others_`.
  std::vector<int> others_;
  IdleJobs jobs_{kWindow_s, [this](const pool::Job& job) { return job.id == 7 ? members_ : others_; }};
  double now_s_ = 0;
};

TEST_F(IdleJobsTest, AJobIsAsBusyAsItsBusiestDevice) {
  hold("GPU-1");
  hold("GPU-2");
  status(0).busy = 0.0;
  status(1).busy = 0.25;
  watch();
  EXPECT_NEAR(busy(), 0.25, 1e-6);
  EXPECT_EQ(jobs_.find(7)->reason(), IdleReason::no_process);
}

TEST_F(IdleJobsTest, OneUnknownDeviceMakesAnIdleJobUnknown) {
  hold("GPU-1");
  hold("GPU-2");
  status(0).busy = 0.0;
  watch();
  EXPECT_LT(busy(), 0);
  status(0).busy = 0.9;
  watch();
  EXPECT_NEAR(busy(), 0.9, 1e-6) << "it works, whatever the other one does";
}

TEST_F(IdleJobsTest, JobsWithoutGpusDoNotCount) {
  hold("cpu:0");
  watch();
  EXPECT_EQ(jobs_.find(7), nullptr);
}

TEST_F(IdleJobsTest, OfASharedDeviceOnlyItsOwnProcessesCount) {
  hold("GPU-1", 0.5);
  status(0).busy = 1.0;
  Process own, other;
  own.pid = 41;
  own.busy = 0.01;
  other.pid = 42;
  other.busy = 0.99;
  status(0).processes = std::vector<Process>{own, other};
  members_ = {41};
  others_ = {42};
  pool::Job neighbour;
  neighbour.id = 8;
  neighbour.state = pool::JobState::running;
  pool_.jobs.push_back(neighbour);
  pool_.leases.push_back({.job = 8, .device = "GPU-1", .share = 0.5});
  watch();
  EXPECT_NEAR(busy(), 0.01, 1e-6);
  others_.clear();
  watch();
  EXPECT_LT(busy(), 0) << "what works there may be the job's all the same";
  others_ = {42};
  own.busy = Missing{MissingReason::unsupported, "not by this driver"};
  status(0).processes = std::vector<Process>{own, other};
  watch();
  EXPECT_LT(busy(), 0) << "the driver does not report it";
}

TEST_F(IdleJobsTest, ANextTurnBeginsAnew) {
  hold("GPU-1");
  status(0).busy = 0.0;
  watch();
  EXPECT_EQ(busy(), 0);
  pool_.leases[0].since_s = 100;
  watch(10);
  EXPECT_LT(busy(), 0);
  pool_.leases.clear();
  watch(10);
  EXPECT_EQ(jobs_.find(7), nullptr);
}

TEST_F(IdleJobsTest, AClockThatIsSetBeginsNothingAnew) {
  hold("GPU-1", 1, 5000);
  pool_.jobs[0].clock = {"boot", 4000};
  status(0).busy = 0.0;
  watch(kWindow_s / 2);
  pool_.leases[0].since_s += 3600;
  pool_.jobs[0].clock.ahead_s += 3600;
  watch(kWindow_s / 2 + 10);
  EXPECT_EQ(busy(), 0);
}

TEST_F(IdleJobsTest, OfThousandsOfProcessesOnlySomeAreLookedAt) {
  hold("GPU-1");
  status(0).busy = 0.0;
  status(0).processes = std::vector<Process>{Process{.pid = 41}};
  constexpr int kGone = 1 << 30;
  members_.assign(4000, kGone);
  members_.push_back(::getpid());
  watch();
  EXPECT_EQ(jobs_.find(7)->reason(), IdleReason::unknown);
  members_.front() = ::getpid();
  watch(2 * kWindow_s);
  EXPECT_EQ(jobs_.find(7)->reason(), IdleReason::unknown) << "it sleeps; what the others do is not known";
  members_ = {::getpid()};
  watch(2 * kWindow_s);
  EXPECT_EQ(jobs_.find(7)->reason(), IdleReason::asleep);
}

}  // namespace
}  // namespace remuda::monitor
