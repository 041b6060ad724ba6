#include "probe/nvml/read_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/nvml/testing/fake_lib.h"

namespace remuda::probe::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReadDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::machine() = {.gpus = {fake::gpu(0x27)}};
    open_.handle = reinterpret_cast<Handle>(&gpu());
  }
  fake::Gpu& gpu() { return fake::machine().gpus.front(); }
  Device read(double now_s = 0) { return read_gpu({lib_, files_, now_s}, open_); }

  Lib lib_ = fake::new_driver();
  KernelFiles files_{"/nowhere/proc", "/nowhere/sys"};
  OpenGpu open_;
};

TEST_F(ReadDevice, TellsWhatItIs) {
  const Device device = read();
  EXPECT_EQ(device.kind, DeviceKind::gpu);
  EXPECT_EQ(device.vendor, "NVIDIA");
  EXPECT_EQ(device.model, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(device.uuid.value(), "GPU-aaaa-27");
  EXPECT_EQ(device.serial.value(), "1320");
  EXPECT_EQ(device.pci.value(), "0000:27:00.0");
  EXPECT_EQ(device.minor.value(), 3);
  EXPECT_EQ(device.architecture.value(), "Ampere");
  EXPECT_EQ(device.compute_capability.value(), "8.0");
  EXPECT_EQ(device.multiprocessors.value(), 108);
  EXPECT_THAT(device.cores.value(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(device.numa_node.value(), 1);
}

TEST_F(ReadDevice, TellsWhatItCanDo) {
  const Device device = read();
  EXPECT_EQ(device.memory_bytes.value(), int64_t{40} << 30);
  EXPECT_EQ(device.pcie_generation_max.value(), 4);
  EXPECT_EQ(device.pcie_generation_card.value(), 4);
  EXPECT_EQ(device.pcie_width_max.value(), 16);
  EXPECT_EQ(device.power_limit_watts.value(), 400);
  EXPECT_EQ(device.power_limit_max_watts.value(), 450);
  EXPECT_EQ(device.sm_clock_max_mhz.value(), 1410);
  EXPECT_EQ(device.memory_clock_max_mhz.value(), 1215);
  EXPECT_FALSE(device.partitioned.value());
  EXPECT_TRUE(device.ecc.value());
  EXPECT_TRUE(device.persistence.value());
  EXPECT_EQ(device.compute_mode.value(), ComputeMode::exclusive);
}

TEST_F(ReadDevice, TellsHowItIsDoing) {
  const Status status = read().status;
  EXPECT_EQ(status.memory_used_bytes.value(), int64_t{19} << 30);
  EXPECT_EQ(status.memory_reserved_bytes.value(), int64_t{1} << 30);
  EXPECT_EQ(status.busy.value(), 0.75);
  EXPECT_EQ(status.memory_busy.value(), 0.4);
  EXPECT_EQ(status.power_watts.value(), 250.5);
  EXPECT_EQ(status.energy_joules.value(), 7000.5);
  EXPECT_EQ(status.temperature_c.value(), 61);
  EXPECT_EQ(status.sm_clock_mhz.value(), 1410);
  EXPECT_THAT(status.throttle.value(), ElementsAre("power_cap", "thermal"));
  EXPECT_EQ(status.ecc_corrected.value(), 2);
  EXPECT_EQ(status.ecc_uncorrected.value(), 0);
  EXPECT_EQ(status.remapped_rows.value(), 3);
  EXPECT_TRUE(status.remap_pending.value());
  EXPECT_FALSE(status.remap_failed.value());
  EXPECT_EQ(status.pcie_generation.value(), 1);
  EXPECT_EQ(status.pcie_width.value(), 16);
  EXPECT_THAT(status.processes.value(), IsEmpty());
}

TEST_F(ReadDevice, ShareOfTimeOfAProcessIsRead) {
  gpu().compute = {{.pid = 42, .used_memory = 1 << 20, .gpu_instance = kWholeGpu}};
  gpu().samples = {{.pid = 42, .sm = 30}};
  const auto processes = read().status.processes.value();
  ASSERT_EQ(processes.size(), 1);
  EXPECT_EQ(processes[0].busy.value(), 0.3);
}

TEST_F(ReadDevice, AnOldDriverGivesWhatItHasAndReasonsForTheRest) {
  lib_ = fake::old_driver();
  const Device device = read();
  EXPECT_EQ(device.uuid.value(), "GPU-aaaa-27");
  EXPECT_EQ(device.architecture.value(), "Ampere");  // by its compute capability
  EXPECT_EQ(device.memory_bytes.value(), int64_t{40} << 30);
  EXPECT_EQ(device.status.memory_used_bytes.value(), int64_t{20} << 30);
  EXPECT_EQ(device.status.power_watts.value(), 250.5);
  for (const std::string& reason :
       {device.multiprocessors.missing().detail, device.partitioned.missing().detail,
        device.status.memory_reserved_bytes.missing().detail, device.status.energy_joules.missing().detail,
        device.status.remapped_rows.missing().detail, device.status.sm_active.missing().detail,
        device.status.xid.missing().detail, device.pcie_generation_card.missing().detail})
    EXPECT_THAT(reason, HasSubstr("not offered by this version of the driver"));
  EXPECT_THAT(device.cores.missing().detail, HasSubstr("/nowhere/sys"));
}

TEST_F(ReadDevice, AVersionItDoesNotKnowIsAskedInTheOlderForm) {
  lib_.memory_v2 = [](Handle, MemoryV2*) { return kArgumentVersionMismatch; };
  lib_.temperature_v1 = [](Handle, Temperature*) { return kArgumentVersionMismatch; };
  const Device device = read();
  EXPECT_EQ(device.memory_bytes.value(), int64_t{40} << 30);
  EXPECT_FALSE(device.status.memory_reserved_bytes.has_value());
  EXPECT_EQ(device.status.temperature_c.value(), 61);
}

TEST_F(ReadDevice, TheNewTemperatureMayBeBelowZero) {
  lib_.temperature_v1 = [](Handle, Temperature* out) {
    if (out->version != version_word<Temperature>(1)) return kArgumentVersionMismatch;
    return out->celsius = -5, kSuccess;
  };
  EXPECT_EQ(read().status.temperature_c.value(), -5);
}

TEST_F(ReadDevice, NotAvailableAndNoneAreNoNumbers) {
  lib_.power_usage = [](Handle, unsigned* out) { return *out = UINT32_MAX, kSuccess; };
  lib_.pcie_width = [](Handle, unsigned* out) { return *out = 0, kSuccess; };
  lib_.utilization = [](Handle, Utilization* out) { return *out = {UINT32_MAX, 40}, kSuccess; };
  gpu().memory_mib = 0;
  const Device device = read();
  EXPECT_FALSE(device.status.power_watts.has_value());
  EXPECT_FALSE(device.status.pcie_width.has_value());
  EXPECT_FALSE(device.status.busy.has_value());
  EXPECT_EQ(device.status.memory_busy.value(), 0.4);
  EXPECT_FALSE(device.memory_bytes.has_value());
  EXPECT_FALSE(device.status.memory_used_bytes.has_value());
}

TEST_F(ReadDevice, OneThatIsLostSaysSoInEachReading) {
  gpu().answers = kGpuIsLost;
  const Device device = read();
  EXPECT_EQ(device.uuid.missing().reason, MissingReason::lost);
  EXPECT_EQ(device.memory_bytes.missing().reason, MissingReason::lost);
  EXPECT_EQ(device.status.temperature_c.missing().reason, MissingReason::lost);
  EXPECT_EQ(device.status.processes.missing().reason, MissingReason::lost);
  EXPECT_EQ(device.status.xid.missing().reason, MissingReason::lost);
}

TEST_F(ReadDevice, TextIsMadeFitForATerminal) {
  gpu().name = "evil\x1b[2J";
  EXPECT_EQ(read().model, "evil?[2J");
}

TEST_F(ReadDevice, ProfilingCountersNeedTwoReadings) {
  EXPECT_THAT(read(10).status.sm_active.missing().detail, HasSubstr("two readings"));
  EXPECT_THAT(read(10.05).status.sm_active.missing().detail, HasSubstr("two readings"));
  const Status status = read(10.2).status;
  EXPECT_EQ(status.sm_active.value(), 0.2);  // the test's counters read ten times their number
  EXPECT_EQ(status.sm_occupancy.value(), 0.3);
  EXPECT_EQ(status.dram_active.value(), 1.0);
  EXPECT_EQ(status.tensor_active.missing().reason, MissingReason::unsupported);
  EXPECT_TRUE(read(11).status.sm_active.has_value());
}

TEST_F(ReadDevice, FatalErrorsAreTheLastSeenSinceTheFirstReading) {
  EXPECT_EQ(read().status.xid.value(), 0);
  gpu().events = {{.type = kEventXid, .data = 31, .gpu_instance = kWholeGpu},
                  {.type = 1, .data = 99},
                  {.type = kEventXid, .data = 79, .gpu_instance = kWholeGpu}};
  EXPECT_EQ(read().status.xid.value(), 79);
  EXPECT_EQ(read().status.xid.value(), 79);
}

TEST_F(ReadDevice, FatalErrorsThatCannotBeWatchedAreMissing) {
  lib_.event_types = [](Handle, uint64_t* out) { return *out = 0, kSuccess; };
  EXPECT_EQ(read().status.xid.missing().detail, "fatal errors: not offered by this device");
}

class Partitions : public ReadDevice {
 protected:
  void SetUp() override {
    ReadDevice::SetUp();
    gpu().mig = true;
    gpu().partitions = {part("MIG-1", 1, 3, 19968), part("MIG-2", 2, 1, 4864)};
    gpu().compute = {{.pid = 100, .gpu_instance = 1}, {.pid = 200, .gpu_instance = 2}};
  }
  static fake::Gpu part(const char* uuid, unsigned instance, unsigned slices, uint64_t mib) {
    return {.uuid = uuid, .memory_mib = mib, .instance = instance, .slices = slices};
  }
  std::vector<Device> partitions(double now_s = 0) {
    Device parent = read(now_s);
    parent.id = "GPU-aaaa-27";
    return read_partitions({lib_, files_, now_s}, open_, parent);
  }
};

TEST_F(Partitions, AreDevicesOfTheirOwn) {
  const auto found = partitions();
  ASSERT_EQ(found.size(), 2);
  const Device& first = found[0];
  EXPECT_EQ(first.kind, DeviceKind::partition);
  EXPECT_EQ(first.parent, "GPU-aaaa-27");
  EXPECT_EQ(first.uuid.value(), "MIG-1");
  EXPECT_EQ(first.profile.value(), "3g.20gb");
  EXPECT_EQ(first.model, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(first.memory_bytes.value(), int64_t{19968} << 20);
  EXPECT_EQ(first.multiprocessors.value(), 42);
  EXPECT_EQ(first.compute_capability.value(), "8.0");
  EXPECT_THAT(first.cores.value(), ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(first.pci.was_read());  // merge() treats devices at one address as one device
  EXPECT_EQ(found[1].profile.value(), "1g.5gb");
}

TEST_F(Partitions, HaveTheirOwnProcessesByInstance) {
  lib_.compute_processes = [](Handle handle, unsigned* count, void* out) {
    const bool whole = handle == reinterpret_cast<Handle>(&fake::machine().gpus.front());
    return whole ? fake::new_driver().compute_processes(handle, count, out) : kNotSupported;
  };
  const auto found = partitions();
  ASSERT_EQ(found[0].status.processes.value().size(), 1);
  EXPECT_EQ(found[0].status.processes.value()[0].pid, 100);
  EXPECT_EQ(found[1].status.processes.value()[0].pid, 200);
}

TEST_F(Partitions, TakeTheirProfileFromTheNameWhereItHasOne) {
  gpu().partitions[0].name = "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb";
  EXPECT_EQ(partitions()[0].profile.value(), "1c.3g.20gb");
}

TEST_F(Partitions, HaveTheirOwnCountersAndErrors) {
  partitions(1);
  gpu().events = {{.type = kEventXid, .data = 94, .gpu_instance = 2}};
  const auto found = partitions(2);
  EXPECT_EQ(found[0].status.sm_active.value(), 0.2);
  EXPECT_EQ(found[0].status.xid.value(), 0);
  EXPECT_EQ(found[1].status.xid.value(), 94);
  gpu().events = {{.type = kEventXid, .data = 79, .gpu_instance = kWholeGpu}};
  EXPECT_EQ(partitions(3)[1].status.xid.value(), 79);
}

TEST_F(Partitions, OneThatMayNotBeOpenedIsThereWithTheReason) {
  gpu().partitions[0].open = kNoPermission;
  const auto found = partitions();
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].uuid.missing().reason, MissingReason::denied);
  EXPECT_EQ(found[0].status.processes.missing().reason, MissingReason::denied);
  EXPECT_EQ(found[1].uuid.value(), "MIG-2");
}

TEST_F(Partitions, AWholeGpuHasNone) {
  gpu().mig = false;
  EXPECT_THAT(partitions(), IsEmpty());
  EXPECT_FALSE(read().offers.was_read());
}

/// With engines for media, a size has the same name.
TEST_F(Partitions, AreOfferedInTheSizesThatTheGpuCanHave) {
  gpu().profiles = {{.id = 19, .slices = 1, .most = 7, .multiprocessors = 14, .memory_mib = 4864},
                    {},
                    {.id = 9, .slices = 3, .most = 2, .multiprocessors = 42, .memory_mib = 19968},
                    {.id = 20, .slices = 1, .most = 1, .multiprocessors = 14, .memory_mib = 4864}};
  const auto offers = read().offers;
  ASSERT_TRUE(offers.has_value());
  EXPECT_THAT(offers.value(), ElementsAre(PartitionOffer{"1g.5gb", int64_t{4864} << 20, 14, 4, 7},
                                          PartitionOffer{"3g.20gb", int64_t{19968} << 20, 42, 0, 2}));
}

TEST_F(Partitions, AreNotOfferedByADriverThatDoesNotTell) {
  lib_.gpu_instance_capacity = nullptr;
  EXPECT_EQ(read().offers.missing().reason, MissingReason::unsupported);
}

}  // namespace
}  // namespace remuda::probe::nvml
