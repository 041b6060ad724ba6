#include "monitor/metrics.h"

#include <gmock/gmock.h>
#include <regex>
#include <set>
#include <sstream>

#include "monitor/pod_claims.h"

namespace remuda::monitor {
namespace {

using testing::HasSubstr;
using testing::Not;

Inventory one_gpu() {
  Device device;
  device.id = "GPU-1";
  device.kind = DeviceKind::gpu;
  device.vendor = "NVIDIA";
  device.model = "RTX 3090";
  device.memory_bytes = int64_t{24} << 30;
  device.status.busy = 0.5;
  device.status.sm_clock_mhz = 1410;
  device.status.power_watts = Missing{MissingReason::denied, "not for users"};
  device.status.throttle = std::vector<std::string>{"thermal"};
  Inventory inventory;
  inventory.time_s = 1000;
  inventory.devices = {std::move(device)};
  return inventory;
}

pool::PoolState pool_with_one_job() {
  pool::Job job;
  job.id = 7;
  job.user = "ana";
  job.name = "ev\\il\"\n";
  job.state = pool::JobState::running;
  pool::PoolState pool;
  pool.jobs = {job};
  pool.leases = {{.job = 7, .device = "GPU-1", .share = 0.5}};
  return pool;
}

TEST(Metrics, GiveWhatIsKnownInBaseUnits) {
  const Inventory inventory = one_gpu();
  const std::string text = metrics_text({inventory, {}, {}});
  EXPECT_THAT(text, HasSubstr(R"(remuda_gpu_busy_ratio{uuid="GPU-1",gpu="gpu:0"} 0.5)"));
  EXPECT_THAT(text, HasSubstr(R"(remuda_gpu_sm_clock_hertz{uuid="GPU-1",gpu="gpu:0"} 1410000000)"));
  EXPECT_THAT(text, HasSubstr(R"(remuda_gpu_throttled{uuid="GPU-1",gpu="gpu:0"} 1)"));
  EXPECT_THAT(text, HasSubstr("remuda_reading_time_seconds 1000"));
}

TEST(Metrics, SayWhyAReadingIsMissingAndGiveNoZeroForIt) {
  const Inventory inventory = one_gpu();
  const std::string text = metrics_text({inventory, {}, {}});
  EXPECT_THAT(text, Not(HasSubstr("remuda_gpu_power_watts{")));
  EXPECT_THAT(
      text,
      HasSubstr(R"(remuda_gpu_reading_missing{uuid="GPU-1",gpu="gpu:0",reading="power_watts",reason="denied"} 1)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(reading="temperature_c")"))) << "nobody asked for it";
}

TEST(Metrics, HaveLeasesByJob) {
  const Inventory inventory = one_gpu();
  const pool::PoolState pool = pool_with_one_job();
  const LeaseUses uses = {
      {{7, "GPU-1"}, {.job = 7, .device = "GPU-1", .user = "ana", .held_s = 60, .busy_s = 30, .busy_known_s = 60}}};
  const std::string text = metrics_text({inventory, pool, uses, 3});
  EXPECT_THAT(text,
              HasSubstr(R"(remuda_lease_share{job_id="7",uuid="GPU-1",gpu="gpu:0",user="ana",name="ev\\il\"\n"} 0.5)"))
      << "a name cannot break out of its label";
  EXPECT_THAT(text, HasSubstr(R"(remuda_lease_busy_seconds_total{job_id="7",uuid="GPU-1",gpu="gpu:0"} 30)"));
  EXPECT_THAT(text, HasSubstr(R"(remuda_gpu_held_ratio{uuid="GPU-1",gpu="gpu:0"} 0.5)"));
  EXPECT_THAT(text, HasSubstr(R"(remuda_jobs{state="running"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(remuda_jobs{state="waiting"} 3)"));
}

TEST(Metrics, OfWhatAJobDidAreAbsentWhereThatIsNotKnown) {
  const Inventory inventory = one_gpu();
  const pool::PoolState pool = pool_with_one_job();
  LeaseUse use{.job = 7, .device = "GPU-1", .user = "ana", .held_s = 60};
  const std::string labels = R"({job_id="7",uuid="GPU-1",gpu="gpu:0"})";
  const std::string unknown = metrics_text({inventory, pool, {{{7, "GPU-1"}, use}}, 0});
  EXPECT_THAT(unknown, HasSubstr("remuda_lease_held_seconds_total" + labels + " 60"));
  EXPECT_THAT(unknown, HasSubstr("remuda_lease_busy_known_seconds_total" + labels + " 0"));
  for (const char* name : {"busy_seconds", "effective_seconds", "energy_joules"})
    EXPECT_THAT(unknown, Not(HasSubstr(std::string("remuda_lease_") + name))) << "0 would be a lie";
  use.busy_known_s = use.effective_known_s = use.energy_known_s = 60;
  const std::string idle = metrics_text({inventory, pool, {{{7, "GPU-1"}, use}}, 0});
  for (const char* name : {"busy_seconds_total", "effective_seconds_total", "energy_joules_total"})
    EXPECT_THAT(idle, HasSubstr(std::string("remuda_lease_") + name + labels + " 0"));
}

TEST(Metrics, OfDevicesGoOnWhileTheAgentIsSilent) {
  const Inventory inventory = one_gpu();
  const LeaseUses uses = {{{7, "GPU-1"}, {.job = 7, .device = "GPU-1", .held_s = 60}}};
  const pool::PoolState nothing;
  Moment moment{inventory, nothing, uses};
  EXPECT_THAT(metrics_text(moment), Not(HasSubstr("remuda_agent_answers"))) << "there is none";
  moment.agent_answers = true;
  EXPECT_THAT(metrics_text(moment), HasSubstr("remuda_agent_answers 1"));
  moment.agent_answers = false;
  const std::string text = metrics_text(moment);
  EXPECT_THAT(text, HasSubstr("remuda_agent_answers 0"));
  EXPECT_THAT(text, HasSubstr(R"(remuda_gpu_busy_ratio{uuid="GPU-1",gpu="gpu:0"} 0.5)"));
  for (const char* of_pool : {"remuda_gpu_held_ratio", "remuda_gpu_drained", "remuda_jobs", "remuda_lease"})
    EXPECT_THAT(text, Not(HasSubstr(of_pool))) << "it is not known, and 0 would be a lie";
}

TEST(Metrics, HaveThePodsOfAKubelet) {
  const Inventory inventory = one_gpu();
  pool::PoolState pool;
  pool.allocations = {{"GPU-1", "Kubernetes", "pod ml/a", "", {{"ml", "a", "u-2", "one"}, {"", "", "u-3", "two"}}},
                      {"gone", "Kubernetes", "pod ml/b", "", {{"ml", "b", "u-4", "one"}}}};
  const std::string text = metrics_text({inventory, pool, {}});
  EXPECT_THAT(
      text,
      HasSubstr(R"(remuda_gpu_pod{uuid="GPU-1",gpu="gpu:0",container="one",namespace="ml",pod="a",pod_uid="u-2"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(container="two",namespace="",pod="",pod_uid="u-3"} 1)"));
  EXPECT_THAT(text, Not(HasSubstr("u-4")));
}

TEST(Metrics, CountWhatPodsMakeOfTheirDevices) {
  const Inventory inventory = one_gpu();
  pool::PoolState pool;
  pool.allocations = {{"GPU-1", "Kubernetes", "pod ml/a", "", {{"ml", "a", "u-2", "one"}, {"ml", "a", "u-2", "two"}}}};
  const auto use_of = [](const char* uid, const char* name) {
    return LeaseUse{
        .job = pod_number(uid), .device = "GPU-1", .pod = name, .held_s = 60, .busy_s = 30, .busy_known_s = 60};
  };
  const LeaseUses uses = {{{pod_number("u-2"), "GPU-1"}, use_of("u-2", "ml/a")},
                          {{pod_number("u-9"), "GPU-1"}, use_of("u-9", "ml/gone")}};
  const std::string text = metrics_text({inventory, pool, uses});
  const std::string counted =
      R"(remuda_pod_busy_seconds_total{uuid="GPU-1",gpu="gpu:0",namespace="ml",pod="a",pod_uid="u-2"} 30)";
  EXPECT_THAT(text, HasSubstr(counted));
  EXPECT_EQ(text.find(counted), text.rfind("remuda_pod_busy_seconds_total{")) << "once, and none that has gone";
  EXPECT_THAT(text, Not(HasSubstr("remuda_lease_held")));
}

TEST(Metrics, HaveLeasesWhereAnotherProcessCountsTheirUse) {
  const Inventory inventory = one_gpu();
  const pool::PoolState pool = pool_with_one_job();
  const std::string text = metrics_text({inventory, pool, {}});
  EXPECT_THAT(text, HasSubstr("remuda_lease_share{job_id=\"7\",uuid=\"GPU-1\",gpu=\"gpu:0\",user=\"ana\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("remuda_lease_held_seconds_total")));
}

TEST(Metrics, HaveRunsThatTellAndDisks) {
  const Inventory inventory = one_gpu();
  pool::PoolState pool = pool_with_one_job();
  pool.jobs[0].name = "train";
  pool.jobs[0].run = {.at_s = 1000,
                      .parts = {{.device = "GPU-1", .waiting = 0.5}, {.device = "cpu:0"}},
                      .checkpoint_age_s = 300,
                      .checkpoint_every_s = 600};
  const std::vector<DiskRoom> disks{{"/var/lib/remuda", 1000, 90}};
  Moment moment{.machine = inventory, .pool = pool, .uses = {}, .disks = disks, .wall_s = 1010};
  const std::string text = metrics_text(moment);
  EXPECT_THAT(text, HasSubstr(R"(remuda_run_waiting_ratio{job_id="7",user="ana",name="train"} 0.25)"));
  EXPECT_THAT(text, HasSubstr(R"(remuda_run_checkpoint_time_seconds{job_id="7",user="ana",name="train"} 700)"));
  EXPECT_THAT(text, HasSubstr(R"(remuda_run_checkpoint_interval_seconds{job_id="7",user="ana",name="train"} 600)"));
  EXPECT_THAT(text, HasSubstr(R"(remuda_disk_bytes{folder="/var/lib/remuda"} 1000)"));
  EXPECT_THAT(text, HasSubstr(R"(remuda_disk_free_bytes{folder="/var/lib/remuda"} 90)"));
  moment.wall_s = 2000;
  EXPECT_THAT(metrics_text(moment), Not(HasSubstr("remuda_run_waiting_ratio"))) << "it has become silent";
  EXPECT_THAT(metrics_text(moment), Not(HasSubstr("remuda_run_checkpoint")));
  moment.wall_s = 1010, pool.jobs[0].run.checkpoint_every_s = 0;
  EXPECT_THAT(metrics_text(moment), Not(HasSubstr("remuda_run_checkpoint"))) << "it wants none";
}

// Prometheus takes each family once, and each set of labels in it once.
TEST(Metrics, HaveEachSeriesOnce) {
  const Inventory inventory = one_gpu();
  const pool::PoolState pool = pool_with_one_job();
  const LeaseUses uses = {{{7, "GPU-1"}, {.job = 7, .device = "GPU-1"}}};
  const std::string text = metrics_text({inventory, pool, uses});
  std::set<std::string> seen;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string series = line.starts_with('#') ? line : line.substr(0, line.rfind(' '));
    EXPECT_TRUE(seen.insert(series).second) << series;
    if (line.starts_with('#')) continue;
    EXPECT_FALSE(std::regex_search(line, std::regex("[{,](job|instance)="))) << "Prometheus would rename it: " << line;
    EXPECT_TRUE(std::regex_search(line, std::regex("^remuda_[a-z_]+(\\{.*\\})? [-+0-9.e]+$"))) << line;
  }
  EXPECT_GT(seen.size(), 20U);
}

}  // namespace
}  // namespace remuda::monitor
