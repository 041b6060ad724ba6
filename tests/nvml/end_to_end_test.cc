// The real probe against the test library: `remuda list --json`, run as users run it, on recorded and on broken
// machines.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "tests/nvml/compare.h"
#include "tests/nvml/library.h"

namespace remuda::tests::nvml {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kGiB = int64_t{1} << 30;
const std::string kMachines = REMUDA_MACHINES;
const std::string kMigMachine = kMachines + "/made-mig-a100.json";
const std::string kEightGpus = kMachines + "/nv-hgxh100-8gpu-8nic.json";

process::Environment environment_of(const std::string& file, const std::string& faults, const std::string& variant) {
  return {{"LD_LIBRARY_PATH", library_folder(variant)},
          {env::test_nvml.name, file},
          {env::test_nvml_faults.name, faults},
          {env::probe_timeout.name, "1"}};
}

Inventory read(const std::string& file) {
  const auto text = read_text(file);
  if (!text) throw std::runtime_error(text.error().message);
  auto machine = parse_inventory(*text, file);
  if (!machine) throw std::runtime_error(machine.error().message);
  return std::move(*machine);
}

/// A GPU of the machine on which the test runs: found by another probe, and unknown to NVML.
bool is_real(const Device& device) {
  if (device.kind != DeviceKind::gpu) return false;
  return device.vendor != "NVIDIA" || (device.pci.has_value() && !device.uuid.has_value());
}

/// The inventory that `remuda list --json` prints of the machine in the file.
Inventory shown(const std::string& file, const std::string& faults = "", const std::string& variant = "current") {
  const Finished list = run({REMUDA_PROGRAM, "list", "--json"}, environment_of(file, faults, variant));
  EXPECT_TRUE(list.exit.ok()) << list;
  EXPECT_EQ(list.err, "");
  auto machine = parse_inventory(list.out, "output");
  if (!machine) throw std::runtime_error(machine.error().message);
  std::erase_if(machine->devices, is_real);
  return std::move(*machine);
}

const ProbeReport& report_of(const Inventory& machine) {
  for (const ProbeReport& report : machine.probes)
    if (report.name == "nvml") return report;
  throw std::runtime_error("no probe of that name");
}

std::vector<std::string> recorded_machines() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kMachines)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".json") && !name.starts_with("amd-")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

TEST(NvmlProbe, SeesEveryRecordedMachineAsItWasRecorded) {
  const std::vector<std::string> files = recorded_machines();
  EXPECT_GE(files.size(), 20u);
  for (const std::string& file : files) EXPECT_THAT(disagreements(read(file), shown(file)), IsEmpty()) << file;
}

TEST(NvmlProbe, ShowsMigInstancesAsPartsOfTheirGpu) {
  const Inventory machine = shown(kMigMachine);
  const std::vector<Device> devices = gpus_of(machine);
  ASSERT_EQ(devices.size(), 5u);
  for (size_t i = 2; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i].kind, DeviceKind::partition);
    EXPECT_EQ(devices[i].parent, devices[1].id);
  }
  EXPECT_TRUE(devices[1].partitioned.value_or(false));
}

/// Of what the card could be cut into, beside the parts that are there.
TEST(NvmlProbe, ShowsTheSizesThatAGpuInMigModeOffers) {
  const std::vector<Device> devices = gpus_of(shown(kMigMachine));
  EXPECT_FALSE(devices.at(0).offers.was_read()) << "it is whole";
  const auto offers = devices.at(1).offers.value_or({});
  EXPECT_THAT(offers, Contains(PartitionOffer{"1g.5gb", int64_t{4864} << 20, 14, 1, 7}));
  EXPECT_THAT(offers, Contains(PartitionOffer{"3g.20gb", int64_t{19968} << 20, 42, 0, 2}));
}

/// `remuda partition` for the GPU that the machine in the file has cut.
Finished change_partitions(const std::string& file, const std::vector<std::string>& words, const std::string& marks) {
  std::vector<std::string> argv{REMUDA_PROGRAM, "partition"};
  argv.insert(argv.end(), words.begin(), words.end());
  argv.insert(argv.end(), {"--marks", marks});
  return run(argv, environment_of(file, "", "current"));
}

/// The names that are no marks begin with a dot.
size_t count_marks(const std::string& folder) {
  return static_cast<size_t>(std::ranges::count_if(std::filesystem::directory_iterator(folder), [](const auto& entry) {
    return !entry.path().filename().string().starts_with('.');
  }));
}

Inventory with_offer(Inventory machine) {
  machine.devices[1].offers = std::vector<PartitionOffer>{{"1g.5gb", 5 * kGiB, 14, 7, 7}};
  return machine;
}

TEST(NvmlProbe, MakesPartitionsAndTakesThemAway) {
  const ScratchFolder folder;
  const std::string file = folder.path("machine.json"), marks = folder.path("marks");
  folder.write("machine.json", to_pretty(to_json(with_offer(read(kMigMachine)))));
  const Finished made = change_partitions(file, {"make", read(file).devices[1].id, "1g.5gb"}, marks);
  ASSERT_TRUE(made.exit.ok()) << made;
  EXPECT_EQ(read(file).devices.size(), 6U);
  EXPECT_EQ(read(file).devices.back().uuid.value_or("") + "\n", made.out);
  EXPECT_EQ(count_marks(marks), 1U);
  const Finished gone =
      change_partitions(file, {"remove", read(file).devices[1].id, read(file).devices.back().id}, marks);
  EXPECT_TRUE(gone.exit.ok()) << gone;
  EXPECT_EQ(read(file).devices.size(), 5U);
  EXPECT_EQ(count_marks(marks), 0U);
}

// The driver says that a GPU has seven devices at the most, so the eighth is none of them.
TEST(NvmlProbe, LeavesNoPartitionThatHasNoName) {
  const ScratchFolder folder;
  Inventory machine = with_offer(read(kMigMachine));
  for (size_t i = 2; i < 5; ++i) machine.devices[i].memory_bytes = kGiB;
  for (int i = 3; i < 7; ++i) {
    Device more = machine.devices[2];
    more.id = fmt::format("MIG-{}", i);
    more.uuid = more.id;
    more.index = i;
    machine.devices.push_back(more);
  }
  folder.write("machine.json", to_pretty(to_json(machine)));
  const std::string file = folder.path("machine.json");
  const Finished made = change_partitions(file, {"make", machine.devices[1].id, "1g.5gb"}, folder.path("marks"));
  EXPECT_FALSE(made.exit.ok());
  EXPECT_THAT(made.err, HasSubstr("the new partition is not among its devices"));
  EXPECT_EQ(read(file).devices.size(), machine.devices.size());
}

/// The status of GPU 1 at the end of a recording: counters and errors show only in the second of two readings.
Status watched(const Inventory& machine, const std::string& faults) {
  const ScratchFolder folder;
  folder.write("machine.json", to_pretty(to_json(machine)));
  const std::string file = folder.path("recording.json");
  const Finished record = run({REMUDA_PROGRAM, "record", file, "--seconds", "0.4", "--interval", "0.2", "--quiet"},
                              environment_of(folder.path("machine.json"), faults, "current"));
  EXPECT_TRUE(record.exit.ok()) << record;
  const Inventory recording = read(file);
  if (recording.samples.empty()) throw std::runtime_error("the recording has no samples");
  return recording.samples.back().devices.at(1);
}

TEST(NvmlProbe, ReadsTheCountersOfHopper) {
  Inventory machine = read(kEightGpus);
  Status& status = machine.devices[1].status;
  status.sm_active = 0.75;
  status.sm_occupancy = 0.5;
  status.tensor_active = 0.25;
  status.dram_active = 0.125;
  const Status seen = watched(machine, "");
  EXPECT_EQ(seen.sm_active.value_or(-1), 0.75);
  EXPECT_EQ(seen.sm_occupancy.value_or(-1), 0.5);
  EXPECT_EQ(seen.tensor_active.value_or(-1), 0.25);
  EXPECT_EQ(seen.dram_active.value_or(-1), 0.125);
}

TEST(NvmlProbe, ListsTheCountersOfOneDevice) {
  Inventory machine = read(kEightGpus);
  machine.devices[1].status.sm_active = 0.75;
  const ScratchFolder folder;
  folder.write("machine.json", to_pretty(to_json(machine)));
  const auto list = [&](const std::string& device) {
    return run({REMUDA_PROGRAM, "list", device}, environment_of(folder.path("machine.json"), "", "current"));
  };
  const Finished counted = list("gpu:1"), without = list("gpu:2");
  EXPECT_THAT(counted.out, testing::ContainsRegex("sm_active +0.75\n")) << counted;
  EXPECT_THAT(without.out, testing::ContainsRegex("sm_active +unsupported: ")) << without;
}

TEST(NvmlProbe, ShowsTheLastXid) {
  const Inventory machine = read(kEightGpus);
  EXPECT_EQ(watched(machine, "xid=1:79").xid.value_or(-1), 79);
  EXPECT_EQ(watched(machine, "xid=0:79").xid.value_or(-1), 0);
}

/// Checks that GPU 2 of eight is listed with `reason`, and that the others are as recorded.
void expect_one_bad_gpu(const Inventory& machine, MissingReason reason) {
  const std::vector<Device> devices = gpus_of(machine);
  ASSERT_EQ(devices.size(), 8u);
  int bad = 0;
  for (const Device& device : devices) {
    if (device.status.memory_used_bytes.has_value()) continue;
    ++bad;
    EXPECT_EQ(device.status.memory_used_bytes.missing().reason, reason);
    EXPECT_EQ(device.memory_bytes.value_or(0), 0);
    EXPECT_FALSE(device.status.memory_used_bytes.missing().detail.empty());
  }
  EXPECT_EQ(bad, 1);
  EXPECT_NE(report_of(machine).reason, "");
}

TEST(NvmlProbe, ALostGpuHidesNoOther) { expect_one_bad_gpu(shown(kEightGpus, "lost=2"), MissingReason::lost); }

TEST(NvmlProbe, AForbiddenGpuHidesNoOther) { expect_one_bad_gpu(shown(kEightGpus, "denied=2"), MissingReason::denied); }

TEST(NvmlProbe, AGpuThatHangsHidesNoOther) { expect_one_bad_gpu(shown(kEightGpus, "hang=2"), MissingReason::lost); }

TEST(NvmlProbe, AGpuThatCrashesTheDriverHidesNoOther) {
  expect_one_bad_gpu(shown(kEightGpus, "crash=2"), MissingReason::lost);
}

TEST(NvmlProbe, AnOldDriverTellsWhatItCan) {
  const Inventory recorded = read(kMigMachine);
  const std::vector<Device> devices = gpus_of(shown(kMigMachine, "", "old"));
  ASSERT_EQ(devices.size(), 2u) << "it knows of no instances";
  const Device& gpu = devices[0];
  EXPECT_EQ(gpu.uuid, recorded.devices[0].uuid);
  EXPECT_EQ(gpu.memory_bytes, recorded.devices[0].memory_bytes);
  EXPECT_EQ(gpu.status.power_watts, recorded.devices[0].status.power_watts);
  EXPECT_EQ(gpu.status.throttle, recorded.devices[0].status.throttle);
  EXPECT_FALSE(gpu.partitioned.has_value());
  EXPECT_FALSE(gpu.status.remapped_rows.has_value());
  EXPECT_FALSE(gpu.status.memory_reserved_bytes.has_value());
  ASSERT_TRUE(gpu.status.processes.has_value());
  EXPECT_EQ(gpu.status.processes.value().size(), 2u) << "such a driver has no list of processes that share";
}

/// With two processes that exist, as the probe checks that: this one and its parent.
Inventory machine_in_use() {
  Device gpu;
  gpu.id = "gpu:0";
  gpu.kind = DeviceKind::gpu;
  gpu.vendor = "NVIDIA";
  std::vector<Process> processes(2);
  processes[0].pid = ::getpid();
  processes[0].memory_bytes = 3 * kGiB;
  processes[0].busy = 0.25;
  processes[1].pid = ::getppid();
  processes[1].memory_bytes = 2 * kGiB;
  gpu.status.processes = processes;
  Inventory machine;
  machine.host = "test";
  machine.devices = {gpu};
  return machine;
}

TEST(NvmlProbe, ReadsProcessesInEitherLayout) {
  const ScratchFolder folder;
  const Inventory machine = machine_in_use();
  folder.write("machine.json", to_pretty(to_json(machine)));
  for (const char* variant : {"current", "conf", "old"}) {
    const Inventory seen = shown(folder.path("machine.json"), "", variant);
    EXPECT_THAT(disagreements(machine, seen), IsEmpty()) << variant;
    const std::vector<Device> devices = gpus_of(seen);
    ASSERT_EQ(devices.size(), 1u);
    ASSERT_TRUE(devices[0].status.processes.has_value()) << variant;
    for (const Process& process : devices[0].status.processes.value()) {
      EXPECT_TRUE(process.user.has_value()) << variant;
      EXPECT_NE(process.command.value_or(""), "") << variant;
    }
  }
}

TEST(NvmlProbe, NamesAMismatchOfLibraryAndKernelModule) {
  const Inventory machine = shown(kEightGpus, "mismatch");
  EXPECT_THAT(gpus_of(machine), IsEmpty());
  EXPECT_THAT(report_of(machine).reason, HasSubstr("different versions"));
}

TEST(NvmlProbe, SaysThatTheDriverIsNotLoaded) {
  const Inventory machine = shown(kEightGpus, "no-init=9");
  EXPECT_THAT(gpus_of(machine), IsEmpty());
  EXPECT_THAT(report_of(machine).reason, HasSubstr("not loaded"));
}

TEST(NvmlProbe, ADriverThatNeverStartsEndsInASentence) {
  const Inventory machine = shown(kEightGpus, "slow-init=600000");
  EXPECT_THAT(gpus_of(machine), IsEmpty());
  EXPECT_NE(report_of(machine).reason, "");
}

std::string number_of(const auto& reading, double per_unit = 1) {
  return reading.has_value() ? fmt::format("{:.0f}", reading.value() * per_unit) : "-";
}

/// The line that client.c prints for a GPU.
std::string line_of(const Device& gpu) {
  const Status& status = gpu.status;
  const int64_t used = status.memory_used_bytes.value_or(0) + status.memory_reserved_bytes.value_or(0);
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}", gpu.uuid.value_or("-"), gpu.model, gpu.memory_bytes.value_or(0),
                     used, number_of(status.temperature_c), number_of(status.power_watts, 1000),
                     number_of(status.busy, 100));
}

TEST(NvmlProbe, AgreesWithAnotherReader) {
  for (const std::string& file : {kMigMachine, kEightGpus}) {
    std::string expected;
    for (const Device& device : gpus_of(shown(file)))
      if (device.kind == DeviceKind::gpu) expected += line_of(device) + "\n";
    const Finished client = run({NVML_CLIENT_PROGRAM}, environment_of(file, "", "current"));
    EXPECT_TRUE(client.exit.ok()) << client;
    EXPECT_EQ(client.out, expected) << file;
  }
}

}  // namespace
}  // namespace remuda::tests::nvml
