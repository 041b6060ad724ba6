#include "run/job_environment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::run {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Pair;

Inventory four_gpus() {
  Inventory inventory;
  for (int index = 0; index < 4; ++index) {
    Device device;
    device.kind = DeviceKind::gpu;
    device.index = index;
    device.vendor = "NVIDIA";
    device.model = "T4";
    device.id = device.label();
    inventory.devices.push_back(device);
  }
  return inventory;
}

TEST(JobEnvironment, NamesTheLeasedDevicesInInventoryOrder) {
  pool::PoolState state;
  state.leases = {{.job = 2, .device = "gpu:3"}, {.job = 1, .device = "gpu:2"}, {.job = 2, .device = "gpu:0"}};
  EXPECT_THAT(devices_of(state, 2, four_gpus()), ElementsAre("gpu:0", "gpu:3"));
  EXPECT_THAT(devices_of(state, 7, four_gpus()), ElementsAre());
}

TEST(JobEnvironment, TellsJobPoolDevicesAndShares) {
  const confine::Visibility environment = job_environment(four_gpus(), "/a/pool", 12, {"gpu:1", "gpu:3"});
  EXPECT_THAT(environment.set, Contains(Pair("REMUDA_JOB", "12")));
  EXPECT_THAT(environment.set, Contains(Pair("REMUDA_POOL", "/a/pool")));
  EXPECT_THAT(environment.set, Contains(Pair("REMUDA_DEVICES", "gpu:1,gpu:3")));
  EXPECT_THAT(environment.set, Contains(Pair("REMUDA_SHARES", "0.5,0.5")));
  EXPECT_THAT(environment.set, Contains(Pair("CUDA_VISIBLE_DEVICES", "1,3")));
}

TEST(JobEnvironment, TellsTheCoresOfCpuDevices) {
  Inventory machine = four_gpus();
  machine.devices[1].cores = std::vector{0, 1};
  for (int index : {0, 1})
    machine.devices.push_back({.id = fmt::format("cpu:{}", index), .index = index, .cores = std::vector{4 * index, 9}});
  EXPECT_THAT(job_environment(machine, "/a/pool", 12, {"gpu:1", "cpu:0", "cpu:1"}).set,
              Contains(Pair("REMUDA_DEVICE_CPUS", ";0,9;4,9")));
}

TEST(JobEnvironment, LetsNoProcessOfAJobPassForADaemon) {
  EXPECT_THAT(job_environment(four_gpus(), "/a/pool", 12, {"gpu:1"}).unset, Contains("REMUDA_DAEMON"));
  EXPECT_THAT(rank_environment(four_gpus(), "/a/pool", 12, {"gpu:1"}, 0, {}).unset, Contains("REMUDA_DAEMON"));
}

TEST(JobEnvironment, GivesEachRankItsOwnDeviceAndTheWholeSetOfTorchrun) {
  const confine::Visibility environment =
      rank_environment(four_gpus(), "/a/pool", 12, {"gpu:1", "gpu:3"}, 1, {29500, 2, 5, 6, "secret"});
  const process::Environment expected{{"CUDA_VISIBLE_DEVICES", "3"},
                                      {"REMUDA_DEVICES", "gpu:1,gpu:3"},
                                      {"RANK", "1"},
                                      {"LOCAL_RANK", "1"},
                                      {"ROLE_RANK", "1"},
                                      {"WORLD_SIZE", "2"},
                                      {"LOCAL_WORLD_SIZE", "2"},
                                      {"ROLE_WORLD_SIZE", "2"},
                                      {"GROUP_RANK", "0"},
                                      {"GROUP_WORLD_SIZE", "1"},
                                      {"ROLE_NAME", "default"},
                                      {"MASTER_ADDR", "127.0.0.1"},
                                      {"MASTER_PORT", "29500"},
                                      {"TORCHELASTIC_RUN_ID", "remuda-12"},
                                      {"TORCHELASTIC_RESTART_COUNT", "2"},
                                      {"TORCHELASTIC_MAX_RESTARTS", "5"},
                                      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                      {"REMUDA_SECRET", "secret"},
                                      {"REMUDA_TORCH_DEVICE", "cuda"},
                                      {"OMP_NUM_THREADS", "6"}};
  for (const auto& variable : expected) EXPECT_THAT(environment.set, Contains(variable).Times(1)) << variable.first;
}

}  // namespace
}  // namespace remuda::run
