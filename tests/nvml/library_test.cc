// The test library by itself: its answers, its errors, and the functions it lacks.
#include "tests/nvml/library.h"

#include <cstring>
#include <gmock/gmock.h>
#include <map>
#include <regex>

#include "base/file.h"

namespace remuda::tests::nvml {
namespace {

constexpr int64_t kTestGiB = int64_t{1} << 30;

Device plain_gpu(int index) {
  Device device;
  device.id = "gpu:" + std::to_string(index);
  device.kind = DeviceKind::gpu;
  device.index = index;
  device.vendor = "nvidia";
  return device;
}

Inventory machine_of(int gpus) {
  Inventory machine;
  machine.host = "test";
  for (int i = 0; i < gpus; ++i) machine.devices.push_back(plain_gpu(i));
  return machine;
}

Link nvlink(int a, int b, int links) {
  Link link;
  link.a = "gpu:" + std::to_string(a);
  link.b = "gpu:" + std::to_string(b);
  link.fabric = Fabric::nvlink;
  link.fabric_links = links;
  return link;
}

std::string text_of(const Library& nvml, const char* function, Handle handle) {
  char text[96] = "";
  EXPECT_EQ(nvml.call(function, handle, static_cast<char*>(text), 96u), kSuccess) << function;
  return text;
}

/// The PCI addresses that the active NVLinks of a GPU lead to, each with the number of links.
std::map<std::string, int> remotes_of(const Library& nvml, Handle handle, RemoteType type) {
  std::map<std::string, int> remotes;
  for (unsigned link = 0; link < kMaxNvlinks; ++link) {
    unsigned active = 0, remote = 0xff;
    if (nvml.call("nvmlDeviceGetNvLinkState", handle, link, &active) != kSuccess || active == 0) continue;
    PciInfo pci{};
    EXPECT_EQ(nvml.call("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link, &remote), kSuccess);
    EXPECT_EQ(nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, link, &pci), kSuccess);
    EXPECT_EQ(remote, type);
    ++remotes[pci.bus_id];
  }
  return remotes;
}

TEST(TestNvml, AnswersOnlyBetweenInitAndShutdown) {
  const Library nvml(machine_of(1));
  unsigned count = 7;
  EXPECT_EQ(nvml.call("nvmlDeviceGetCount_v2", &count), kUninitialized);
  EXPECT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  EXPECT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  EXPECT_EQ(nvml.call("nvmlShutdown"), kSuccess);
  EXPECT_EQ(nvml.call("nvmlDeviceGetCount_v2", &count), kSuccess);
  EXPECT_EQ(count, 1u);
  const Handle handle = nvml.gpu(0);
  EXPECT_EQ(nvml.call("nvmlShutdown"), kSuccess);
  unsigned watts = 0;
  EXPECT_EQ(nvml.call("nvmlDeviceGetPowerUsage", handle, &watts), kUninitialized);
  EXPECT_EQ(nvml.call("nvmlShutdown"), kUninitialized);
}

TEST(TestNvml, MakesUpWhatEveryGpuHas) {
  const Library nvml(machine_of(2));
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  const Handle handle = nvml.gpu(1);
  EXPECT_EQ(text_of(nvml, "nvmlDeviceGetUUID", handle), "GPU-00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(text_of(nvml, "nvmlDeviceGetName", handle), "Test GPU");
  PciInfo pci{};
  ASSERT_EQ(nvml.call("nvmlDeviceGetPciInfo_v3", handle, &pci), kSuccess);
  EXPECT_STREQ(pci.bus_id, "00000000:11:00.0");
  EXPECT_STREQ(pci.bus_id_legacy, "0000:11:00.0");
  EXPECT_EQ(pci.bus, 0x11u);
  Memory memory{};
  ASSERT_EQ(nvml.call("nvmlDeviceGetMemoryInfo", handle, &memory), kSuccess);
  EXPECT_EQ(memory.total, static_cast<unsigned long long>(24 * kTestGiB));
  EXPECT_EQ(memory.used, 0u);
}

TEST(TestNvml, FindsAGpuByUuidAndAddress) {
  const Library nvml(machine_of(2));
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  Handle handle = nullptr;
  EXPECT_EQ(nvml.call("nvmlDeviceGetHandleByUUID", "GPU-00000000-0000-0000-0000-000000000001", &handle), kSuccess);
  EXPECT_EQ(handle, nvml.gpu(1));
  EXPECT_EQ(nvml.call("nvmlDeviceGetHandleByPciBusId_v2", "00000000:10:00.0", &handle), kSuccess);
  EXPECT_EQ(handle, nvml.gpu(0));
  EXPECT_EQ(nvml.call("nvmlDeviceGetHandleByUUID", "GPU-no", &handle), kNotFound);
  EXPECT_EQ(nvml.call("nvmlDeviceGetHandleByIndex_v2", 2u, &handle), kInvalidArgument);
}

TEST(TestNvml, ServesOnlyItsOwnVendor) {
  Inventory machine = machine_of(2);
  machine.devices[0].vendor = "amd";
  const Library nvml(machine);
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  unsigned count = 0;
  EXPECT_EQ(nvml.call("nvmlDeviceGetCount_v2", &count), kSuccess);
  EXPECT_EQ(count, 1u);
}

TEST(TestNvml, GivesReadingsInTheInterfacesUnits) {
  Inventory machine = machine_of(1);
  Status& status = machine.devices[0].status;
  status.power_watts = 61.5;
  status.busy = 0.29;
  status.memory_used_bytes = 3 * kTestGiB;
  status.memory_reserved_bytes = kTestGiB;
  status.throttle = std::vector<std::string>{"idle", "power_brake"};
  machine.devices[0].cores = std::vector<int>{0, 1, 65};
  const Library nvml(machine);
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  const Handle handle = nvml.gpu(0);
  unsigned milliwatts = 0;
  EXPECT_EQ(nvml.call("nvmlDeviceGetPowerUsage", handle, &milliwatts), kSuccess);
  EXPECT_EQ(milliwatts, 61500u);
  Utilization use{};
  EXPECT_EQ(nvml.call("nvmlDeviceGetUtilizationRates", handle, &use), kSuccess);
  EXPECT_EQ(use.gpu, 29u);
  unsigned long long bits = 0;
  EXPECT_EQ(nvml.call("nvmlDeviceGetCurrentClocksEventReasons", handle, &bits), kSuccess);
  EXPECT_EQ(bits, 0x81u);
  unsigned long cores[2] = {};
  EXPECT_EQ(nvml.call("nvmlDeviceGetCpuAffinity", handle, 2u, &cores[0]), kSuccess);
  EXPECT_THAT(cores, ::testing::ElementsAre(3ul, 2ul));
  Memory memory{};
  EXPECT_EQ(nvml.call("nvmlDeviceGetMemoryInfo", handle, &memory), kSuccess);
  EXPECT_EQ(memory.used, static_cast<unsigned long long>(4 * kTestGiB))
      << "the old call counts what is reserved as used";
  MemoryV2 newer{.version = version_of<MemoryV2>(2)};
  EXPECT_EQ(nvml.call("nvmlDeviceGetMemoryInfo_v2", handle, &newer), kSuccess);
  EXPECT_EQ(newer.used, static_cast<unsigned long long>(3 * kTestGiB));
  newer.version = version_of<MemoryV2>(1);
  EXPECT_EQ(nvml.call("nvmlDeviceGetMemoryInfo_v2", handle, &newer), kArgumentVersionMismatch);
}

TEST(TestNvml, EveryReasonHasItsCode) {
  Inventory machine = machine_of(1);
  Status& status = machine.devices[0].status;
  status.power_watts = Missing{MissingReason::denied, "x"};
  status.energy_joules = Missing{MissingReason::lost, "x"};
  status.temperature_c = Missing{MissingReason::unsupported, "x"};
  const Library nvml(machine);
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  const Handle handle = nvml.gpu(0);
  unsigned value = 0;
  unsigned long long energy = 0;
  EXPECT_EQ(nvml.call("nvmlDeviceGetPowerUsage", handle, &value), kNoPermission);
  EXPECT_EQ(nvml.call("nvmlDeviceGetTotalEnergyConsumption", handle, &energy), kGpuIsLost);
  EXPECT_EQ(nvml.call("nvmlDeviceGetTemperature", handle, 0u, &value), kNotSupported);
  EXPECT_EQ(nvml.call("nvmlDeviceGetMinorNumber", handle, &value), kNotSupported) << "nobody read it";
}

TEST(TestNvml, FaultyGpusGiveNoHandle) {
  const Library nvml(machine_of(3), "lost=2,denied=1");
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  Handle handle = nullptr;
  EXPECT_EQ(nvml.call("nvmlDeviceGetHandleByIndex_v2", 1u, &handle), kNoPermission);
  EXPECT_EQ(nvml.call("nvmlDeviceGetHandleByPciBusId_v2", "0000:12:00.0", &handle), kGpuIsLost);
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(nvml.call("nvmlDeviceGetHandleByIndex_v2", 0u, &handle), kSuccess);
}

TEST(TestNvml, StartingCanFail) {
  EXPECT_EQ(Library(machine_of(1), "no-init=9").call("nvmlInit_v2"), kDriverNotLoaded);
  EXPECT_EQ(Library(machine_of(1), "mismatch").call("nvmlInit_v2"), kVersionMismatch);
  EXPECT_EQ(Library(machine_of(1), "lots=1").call("nvmlInit_v2"), kUnknown);
}

TEST(TestNvmlDeathTest, CrashesWhereTheRealOneDoes) {
  const Library nvml(machine_of(2), "crash=1");
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  char name[96];
  EXPECT_DEATH(nvml.call("nvmlDeviceGetName", nvml.gpu(1), &name[0], 96u), "");
  EXPECT_DEATH(nvml.call("nvmlDeviceGetName", reinterpret_cast<Handle>(&name), &name[0], 96u), "");
  EXPECT_EQ(text_of(nvml, "nvmlDeviceGetName", nvml.gpu(0)), "Test GPU");
}

Inventory machine_with_processes() {
  Inventory machine = machine_of(1);
  Process compute, graphics;
  compute.pid = 100;
  compute.memory_bytes = kTestGiB;
  compute.busy = 0.5;
  graphics.pid = 200;
  graphics.type = "graphics";
  machine.devices[0].status.processes = std::vector<Process>{compute, graphics};
  return machine;
}

TEST(TestNvml, ListsProcessesWithTheRoomThereIs) {
  const Library nvml(machine_with_processes());
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  const Handle handle = nvml.gpu(0);
  unsigned count = 0;
  const char* newest = "nvmlDeviceGetComputeRunningProcesses_v3";
  EXPECT_EQ(nvml.call(newest, handle, &count, static_cast<ProcessV2*>(nullptr)), kInsufficientSize);
  ASSERT_EQ(count, 1u);
  ProcessV2 process{};
  EXPECT_EQ(nvml.call(newest, handle, &count, &process), kSuccess);
  EXPECT_EQ(process.pid, 100u);
  EXPECT_EQ(process.used_memory, static_cast<unsigned long long>(kTestGiB));
  EXPECT_EQ(process.gpu_instance, kNoInstance);
  ProcessDetail details[2] = {};
  ProcessDetailList list{version_of<ProcessDetailList>(1), 3, 2, details};
  EXPECT_EQ(nvml.call("nvmlDeviceGetRunningProcessDetailList", handle, &list), kSuccess);
  EXPECT_EQ(list.count, 2u);
  EXPECT_EQ(details[1].used_memory, kNotAvailable);
  ProcessSample sample{};
  EXPECT_EQ(nvml.call("nvmlDeviceGetProcessUtilization", handle, &sample, &count, 0ull), kSuccess);
  EXPECT_EQ(sample.sm, 50u);
}

TEST(TestNvml, OneKindOfDriverHasTheLargerProcessStruct) {
  const Library nvml(machine_with_processes(), "", "conf");
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  ProcessDetail processes[2];
  std::memset(&processes, 0x5a, sizeof processes);
  unsigned count = 1;
  EXPECT_EQ(nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", nvml.gpu(0), &count, &processes[0]), kSuccess);
  EXPECT_EQ(processes[0].protected_memory, 0u);
  EXPECT_NE(nvml.symbol("nvmlDeviceGetConfComputeMemSizeInfo"), nullptr);
  EXPECT_EQ(nvml.symbol("nvmlDeviceGetRunningProcessDetailList"), nullptr);
}

TEST(TestNvml, AnOldDriverLacksHalfOfTheSymbols) {
  const Library nvml(machine_of(1), "", "old");
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  EXPECT_EQ(text_of(nvml, "nvmlDeviceGetName", nvml.gpu(0)), "Test GPU");
  EXPECT_NE(nvml.symbol("nvmlDeviceGetComputeRunningProcesses"), nullptr);
  for (const char* newer : {"nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetMemoryInfo_v2",
                            "nvmlDeviceGetMigMode", "nvmlGpmMetricsGet", "nvmlDeviceGetConfComputeMemSizeInfo"})
    EXPECT_EQ(nvml.symbol(newer), nullptr) << newer;
}

TEST(TestNvml, OffersEveryCallOfTheProbe) {
  const auto list = read_text(PROBE_CALLS);
  ASSERT_TRUE(list) << list.error().message;
  const std::regex quoted("\"(nvml\\w+)\"");
  const std::sregex_iterator calls(list->begin(), list->end(), quoted);
  EXPECT_GT(std::distance(calls, {}), 50);
  const Library nvml(machine_of(1));
  for (auto call = calls; call != std::sregex_iterator(); ++call)
    EXPECT_NE(nvml.symbol((*call)[1]), nullptr)
        << "probe/nvml/lib.h asks for " << (*call)[1] << ", which no file of tests/nvml answers";
}

TEST(TestNvml, PairsHaveWiresOfTheirOwn) {
  Inventory machine = machine_of(3);
  machine.links = {nvlink(0, 1, 2), nvlink(0, 2, 1)};
  machine.links[0].path = Path::node;
  machine.links[0].peer_access = PeerAccess::chipset;
  const Library nvml(machine);
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  const std::map<std::string, int> expected{{"00000000:11:00.0", 2}, {"00000000:12:00.0", 1}};
  EXPECT_EQ(remotes_of(nvml, nvml.gpu(0), kRemoteGpu), expected);
  unsigned value = 9;
  EXPECT_EQ(nvml.call("nvmlDeviceGetNvLinkState", nvml.gpu(0), 3u, &value), kSuccess);
  EXPECT_EQ(value, 0u) << "one link more, which is not active";
  EXPECT_EQ(nvml.call("nvmlDeviceGetTopologyCommonAncestor", nvml.gpu(1), nvml.gpu(0), &value), kSuccess);
  EXPECT_EQ(value, 40u);
  EXPECT_EQ(nvml.call("nvmlDeviceGetP2PStatus", nvml.gpu(0), nvml.gpu(1), 0u, &value), kSuccess);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(nvml.call("nvmlDeviceGetP2PStatus", nvml.gpu(0), nvml.gpu(1), 2u, &value), kSuccess);
  EXPECT_EQ(value, 0u);
}

TEST(TestNvml, ManyGpusOfEqualLinksHaveSwitches) {
  Inventory machine = machine_of(6);
  for (int a = 0; a < 6; ++a)
    for (int b = a + 1; b < 6; ++b) machine.links.push_back(nvlink(a, b, 12));
  const Library nvml(machine);
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  const auto first = remotes_of(nvml, nvml.gpu(0), kRemoteSwitch);
  EXPECT_EQ(first.size(), 6u);
  EXPECT_EQ(first.begin()->second, 2);
  EXPECT_EQ(remotes_of(nvml, nvml.gpu(5), kRemoteSwitch), first);
}

TEST(TestNvml, IslandsHaveSwitchesOfTheirOwn) {
  Inventory machine = machine_of(4);
  machine.links = {nvlink(0, 1, 18), nvlink(2, 3, 18)};
  for (Link& link : machine.links) link.fabric_switched = true;
  const Library nvml(machine);
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  const auto first = remotes_of(nvml, nvml.gpu(0), kRemoteSwitch);
  EXPECT_EQ(remotes_of(nvml, nvml.gpu(1), kRemoteSwitch), first);
  EXPECT_NE(remotes_of(nvml, nvml.gpu(2), kRemoteSwitch), first);
}

TEST(TestNvml, OffersMigInstancesAsDevices) {
  Inventory machine = machine_of(1);
  machine.devices[0].partitioned = true;
  Device part = plain_gpu(0);
  part.id = "MIG-1";
  part.uuid = part.id;
  part.kind = DeviceKind::partition;
  part.parent = "gpu:0";
  part.profile = std::string("3g.20gb");
  part.memory_bytes = 20 * kTestGiB;
  machine.devices.push_back(part);
  const Library nvml(machine);
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  Handle handle = nullptr, parent = nullptr;
  ASSERT_EQ(nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", nvml.gpu(0), 0u, &handle), kSuccess);
  EXPECT_EQ(text_of(nvml, "nvmlDeviceGetUUID", handle), "MIG-1");
  EXPECT_EQ(nvml.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle, &parent), kSuccess);
  EXPECT_EQ(parent, nvml.gpu(0));
  Attributes attributes{};
  EXPECT_EQ(nvml.call("nvmlDeviceGetAttributes_v2", handle, &attributes), kSuccess);
  EXPECT_EQ(attributes.gpu_slices, 3u);
  EXPECT_EQ(attributes.memory_mb, 20u << 10);
  EXPECT_EQ(nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", nvml.gpu(0), 1u, &handle), kNotFound);
}

TEST(TestNvml, AnXidWaitsOnTheEventSetOnce) {
  const Library nvml(machine_of(2), "xid=1:79");
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  void* set = nullptr;
  ASSERT_EQ(nvml.call("nvmlEventSetCreate", &set), kSuccess);
  for (const unsigned index : {0u, 1u})
    EXPECT_EQ(nvml.call("nvmlDeviceRegisterEvents", nvml.gpu(index), kXidEvent, set), kSuccess);
  EventData event{};
  EXPECT_EQ(nvml.call("nvmlEventSetWait_v2", set, &event, 0u), kSuccess);
  EXPECT_EQ(event.device, nvml.gpu(1));
  EXPECT_EQ(event.data, 79u);
  EXPECT_EQ(nvml.call("nvmlEventSetWait_v2", set, &event, 0u), kTimeout);
  EXPECT_EQ(nvml.call("nvmlEventSetFree", set), kSuccess);
}

TEST(TestNvml, HasCountersWhereTheyAreRecorded) {
  Inventory machine = machine_of(2);
  machine.devices[0].status.sm_active = 0.75;
  const Library nvml(machine);
  ASSERT_EQ(nvml.call("nvmlInit_v2"), kSuccess);
  GpmSample* sample = nullptr;
  ASSERT_EQ(nvml.call("nvmlGpmSampleAlloc", &sample), kSuccess);
  EXPECT_EQ(nvml.call("nvmlGpmSampleGet", nvml.gpu(1), sample), kNotSupported);
  EXPECT_EQ(nvml.call("nvmlGpmSampleGet", nvml.gpu(0), sample), kSuccess);
  GpmMetrics metrics{1, 1, sample, sample, {{.id = 2}}};
  EXPECT_EQ(nvml.call("nvmlGpmMetricsGet", &metrics), kSuccess);
  EXPECT_EQ(metrics.metrics[0].code, kSuccess);
  EXPECT_EQ(metrics.metrics[0].value, 75);
  EXPECT_EQ(nvml.call("nvmlGpmSampleFree", sample), kSuccess);
}

}  // namespace
}  // namespace remuda::tests::nvml
