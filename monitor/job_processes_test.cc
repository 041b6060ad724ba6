#include "monitor/job_processes.h"

#include <gtest/gtest.h>

namespace remuda::monitor {
namespace {

pool::PoolState pool() {
  pool::PoolState state;
  for (const int64_t id : {7, 77}) {
    pool::Job job;
    job.id = id;
    job.cgroup = "/sys/fs/cgroup/remuda.slice/remuda-ab-" + std::to_string(id);
    state.jobs.push_back(std::move(job));
  }
  state.jobs.push_back({.id = 8});  // no cgroup
  return state;
}

TEST(JobIn, IsTheJobOfTheCgroup) {
  EXPECT_EQ(job_in("0::/remuda.slice/remuda-ab-7\n", pool()), 7);
  EXPECT_EQ(job_in("0::/remuda.slice/remuda-ab-77\n", pool()), 77);
  EXPECT_EQ(job_in("12:devices:/x\n0::/remuda.slice/remuda-ab-7", pool()), 7) << "several trees";
  EXPECT_EQ(job_in("0::/remuda.slice/remuda-ab-7/container/init\n", pool()), 7) << "a container within it";
}

TEST(JobIn, IsNoneForOthers) {
  for (const char* text : {"", "\n", "0::/\n", "0::", ":", "::", "0::/user.slice/remuda-ab-9\n", "0::/remuda.slice\n",
                           "0::/remuda.slice/remuda-ab-777\n", "nonsense", "0::/user.slice/mine/remuda-ab-7\n",
                           "0::/user.slice/mine/remuda-ab-7/x\n", "0::/mine/remuda.slice/remuda-ab-7/x\n"})
    EXPECT_EQ(job_in(text, pool()), 0) << text;
}

TEST(UsedByStrangers, IsADeviceOnWhichAProcessOfNoJobComputes) {
  Device device;
  device.id = "GPU-1";
  Process own, other, screen;
  own.pid = 1, other.pid = 2, screen.pid = 3;
  own.type = other.type = "compute";
  screen.type = "graphics";
  Inventory machine;
  machine.devices = {device};
  pool::PoolState state = pool();
  const JobOf job_of = [](int pid) -> int64_t { return pid == 1 ? 7 : 0; };
  const auto used = [&](std::vector<Process> processes) {
    machine.devices[0].status.processes = std::move(processes);
    return used_by_strangers(machine, state, job_of);
  };
  EXPECT_TRUE(used({own, other}).empty()) << "without a lease it is none of theirs";
  state.leases = {{.job = 7, .device = "GPU-1"}};
  EXPECT_EQ(used({own, other}), std::vector<std::string>{"GPU-1"});
  EXPECT_TRUE(used({own, screen}).empty());
  state.leases.push_back({.job = 8, .device = "GPU-1"});
  EXPECT_TRUE(used({own, other}).empty()) << "it may be of the job that no cgroup holds";
}

}  // namespace
}  // namespace remuda::monitor
