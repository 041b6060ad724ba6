#include "monitor/dcgm.h"

#include <gmock/gmock.h>

namespace remuda::monitor {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

Device gpu_of(int index, const char* vendor) {
  Device device;
  device.id = std::string(vendor) + std::to_string(index);
  device.kind = DeviceKind::gpu;
  device.index = index;
  device.vendor = vendor;
  device.model = "Model \"X\"";
  device.uuid = "GPU-" + std::to_string(index);
  device.pci = "0000:27:00.0";
  device.minor = index;
  device.memory_bytes = int64_t{24} << 30;
  device.status.busy = 0.5;
  device.status.memory_used_bytes = int64_t{8} << 30;
  device.status.power_watts = 250.5;
  device.status.energy_joules = 12.5;
  device.status.temperature_c = 61.0;
  device.status.sm_clock_mhz = 1410;
  return device;
}

Inventory mixed_machine() {
  Inventory machine;
  machine.host = "mix";
  machine.devices = {gpu_of(0, "NVIDIA"), gpu_of(1, "AMD")};
  machine.devices[0].status.tensor_active = 0.25;
  machine.drivers = {{.vendor = "NVIDIA", .version = "550.54"}};
  return machine;
}

TEST(Dcgm, FeedsTheDashboardForDevicesOfBothMakers) {
  const Inventory machine = mixed_machine();
  const std::string text = dcgm_text({machine, {}, {}});
  const std::string first =
      R"({gpu="0",UUID="GPU-0",pci_bus_id="0000:27:00.0",device="nvidia0",modelName="Model \"X\"",Hostname="mix",DCGM_FI_DRIVER_VERSION="550.54"})";
  const std::string second =
      R"({gpu="1",UUID="GPU-1",pci_bus_id="0000:27:00.0",device="amd1",modelName="Model \"X\"",Hostname="mix"})";
  for (const std::string& labels : {first, second}) {  // the six series of Grafana 12239, except for the last
    EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_GPU_TEMP" + labels + " 61"));
    EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_POWER_USAGE" + labels + " 250.5"));
    EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_SM_CLOCK" + labels + " 1410"));
    EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_GPU_UTIL" + labels + " 50"));
    EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_FB_USED" + labels + " 8192"));
    EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + labels + " 12500"));
  }
  EXPECT_THAT(text, HasSubstr("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" + first + " 0.25"));
  EXPECT_THAT(text, Not(HasSubstr("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" + second))) << "it is not counted there";
  EXPECT_THAT(text, HasSubstr("# TYPE DCGM_FI_DEV_GPU_TEMP gauge"));
}

TEST(Dcgm, CountsMemoryInWholeMebibytes) {
  Inventory machine = mixed_machine();
  machine.devices.resize(1);
  machine.devices[0].memory_bytes = (int64_t{81559} << 20) + 700'000;
  machine.devices[0].status.memory_used_bytes = (int64_t{1000} << 20) + 900'000;
  machine.devices[0].status.memory_reserved_bytes = (int64_t{500} << 20) + 524'288;
  const std::string text = dcgm_text({machine, {}, {}});
  EXPECT_THAT(text, ContainsRegex("DCGM_FI_DEV_FB_FREE\\{.*\\} 80058\n"));
  EXPECT_THAT(text, ContainsRegex("DCGM_FI_DEV_FB_USED\\{.*\\} 1000\n"));
  EXPECT_THAT(text, ContainsRegex("DCGM_FI_DEV_FB_RESERVED\\{.*\\} 500\n"));
}

TEST(Dcgm, NamesTheJobThatHoldsADeviceAlone) {
  const Inventory machine = mixed_machine();
  pool::PoolState pool;
  pool.leases = {{.job = 7, .device = "NVIDIA0"},
                 {.job = 8, .device = "AMD1", .share = 0.5},
                 {.job = 9, .device = "AMD1", .share = 0.5}};
  const std::string text = dcgm_text({machine, pool, {}});
  EXPECT_THAT(text, HasSubstr(R"(hpc_job="7")"));
  for (const char* shared : {R"(hpc_job="8")", R"(hpc_job="9")"})
    EXPECT_THAT(text, Not(HasSubstr(shared))) << "the reading is the device's, not one job's";
}

TEST(Dcgm, NamesThePodThatHasADeviceAlone) {
  const Inventory machine = mixed_machine();
  pool::PoolState pool;
  pool.allocations = {{"NVIDIA0", "Kubernetes", "pod ml/train-0", "", {{"ml", "train-0", "u-1", "main"}}},
                      {"AMD1", "Kubernetes", "", "", {{"ml", "a", "u-2", "one"}, {"ml", "a", "u-2", "two"}}}};
  const std::string text = dcgm_text({machine, pool, {}});
  EXPECT_THAT(text, HasSubstr(R"(550.54",container="main",namespace="ml",pod="train-0",pod_uid="u-1"} 61)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(pod_uid="u-2")"))) << "the reading is the device's, not one container's";
}

TEST(Dcgm, NumbersTheFilesOfJobsAsThatExporterDoes) {
  Inventory machine;
  machine.devices = {gpu_of(0, "AMD"), gpu_of(1, "NVIDIA"), gpu_of(2, "AMD"), gpu_of(3, "NVIDIA")};
  pool::PoolState pool;
  pool.leases = {{.job = 6, .device = "AMD0"},
                 {.job = 7, .device = "NVIDIA1"},
                 {.job = 8, .device = "NVIDIA3", .share = 0.5},
                 {.job = 9, .device = "NVIDIA3", .share = 0.5}};
  EXPECT_THAT(job_mapping({machine, pool, {}}), ElementsAre(Pair("0", "7\n"), Pair("1", "8\n9\n")));
}

TEST(Dcgm, LeavesOutCpusAndWhatIsUnknown) {
  Inventory machine = mixed_machine();
  machine.devices[0].kind = DeviceKind::cpu;
  machine.devices[1].status = Status();
  EXPECT_EQ(dcgm_text({machine, {}, {}}), "");
}

}  // namespace
}  // namespace remuda::monitor
