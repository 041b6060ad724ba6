#include "device/sane.h"

#include <gtest/gtest.h>

namespace remuda {
namespace {

Device card() {
  Device device{.id = "gpu:0", .kind = DeviceKind::gpu};
  device.memory_bytes = int64_t{24} << 30;
  device.status.memory_used_bytes = int64_t{1} << 30;
  device.status.power_watts = 61.5;
  return device;
}

Device sane(Device device) { return make_sane(device), device; }

/// testdata/cases/live-power-nonsense: 3.7 MW.
TEST(Sane, WhatCannotBeIsMissing) {
  Device device = card();
  device.status.power_watts = 3'700'000.0;
  EXPECT_EQ(sane(device).status.power_watts.missing(),
            (Missing{MissingReason::unsupported, "power_watts: 3700000 W makes no sense"}));
  EXPECT_EQ(sane(device).status.memory_used_bytes, device.status.memory_used_bytes);
}

TEST(Sane, EachReadingHasItsBounds) {
  Device device = card();
  Status& status = device.status;
  device.power_limit_watts = -1.0, device.pcie_width_max = 255, device.pcie_generation_max = 0;
  device.sm_clock_max_mhz = 1'000'000'000, device.multiprocessors = 0, device.minor = -1;
  status.temperature_c = -273.0, status.busy = 2.5, status.memory_busy = -0.1, status.sm_active = 97.0;
  status.energy_joules = 1.8e16, status.sm_clock_mhz = -5, status.pcie_width = 64, status.ecc_corrected = -1;
  const Device checked = sane(device);
  EXPECT_FALSE(checked.power_limit_watts.has_value() || checked.pcie_width_max.has_value() ||
               checked.pcie_generation_max.has_value() || checked.sm_clock_max_mhz.has_value() ||
               checked.multiprocessors.has_value() || checked.minor.has_value());
  EXPECT_FALSE(checked.status.temperature_c.has_value() || checked.status.busy.has_value() ||
               checked.status.memory_busy.has_value() || checked.status.sm_active.has_value() ||
               checked.status.energy_joules.has_value() || checked.status.sm_clock_mhz.has_value() ||
               checked.status.pcie_width.has_value() || checked.status.ecc_corrected.has_value());
  EXPECT_EQ(checked.status.busy.missing().detail, "busy: 2.5 makes no sense");
}

TEST(Sane, NothingUsesMoreMemoryThanThereIs) {
  Device device = card();
  device.status.memory_used_bytes = int64_t{25} << 30;
  Process process{.pid = 7, .memory_bytes = int64_t{30} << 30, .busy = 1.5};
  device.status.processes = std::vector{process};
  const Device checked = sane(device);
  EXPECT_EQ(checked.status.memory_used_bytes.missing().detail, "memory_used_bytes: 26843545600 bytes makes no sense");
  const Process& seen = checked.status.processes.value().at(0);
  EXPECT_FALSE(seen.memory_bytes.has_value() || seen.busy.has_value());
  EXPECT_EQ(seen.pid, 7);
  device.memory_bytes = {};
  EXPECT_TRUE(sane(device).status.memory_used_bytes.has_value()) << "nobody knows";
}

TEST(Sane, WhatCanBeStays) {
  Device device = card();
  device.status.temperature_c = 0.0, device.status.busy = 1.0, device.status.power_watts = 0.0;
  device.status.memory_used_bytes = device.memory_bytes, device.status.sm_clock_mhz = 0;
  device.power_limit_watts = 2700.0;
  EXPECT_EQ(sane(device), device);
}

TEST(Sane, OneSensorsErrorIsNoLostCard) {
  const Missing error{MissingReason::lost, "nvidia-smi says [Unknown Error]"};
  Device device = card();
  device.status.power_watts = error;
  device.serial = error;
  const Device checked = sane(device);
  EXPECT_EQ(checked.status.power_watts.missing(), (Missing{MissingReason::unsupported, error.detail}));
  EXPECT_EQ(checked.serial.missing().reason, MissingReason::unsupported);
}

TEST(Sane, OneThatMeasuresNothingIsLost) {
  const Missing error{MissingReason::lost, "nvidia-smi says [Unknown Error]"};
  Device device = card();
  device.status = {.memory_used_bytes = error, .power_watts = error, .pcie_width = 16};
  EXPECT_EQ(sane(device), device);
}

TEST(Sane, SamplesAreHeldToTheSame) {
  Inventory machine;
  machine.devices = {card()};
  Status status = card().status;
  status.power_watts = 1e9;
  status.temperature_c = Missing{MissingReason::lost, "no answer"};
  machine.samples = {{.time_s = 1, .devices = {status}}};
  make_sane(machine);
  EXPECT_FALSE(machine.samples[0].devices[0].power_watts.has_value());
  EXPECT_EQ(machine.samples[0].devices[0].temperature_c.missing().reason, MissingReason::unsupported);
  EXPECT_TRUE(machine.samples[0].devices[0].memory_used_bytes.has_value());
}

}  // namespace
}  // namespace remuda
