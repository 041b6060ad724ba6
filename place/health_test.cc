#include "place/health.h"

#include <gmock/gmock.h>

#include "place/testing/machine.h"

namespace remuda::place {
namespace {

using testing::HasSubstr;
using testing::Optional;

std::optional<std::string> ailment_of(const std::function<void(Device&)>& change) {
  Inventory inventory = make_gpus(1);
  change(inventory.devices[0]);
  return ailment(inventory, inventory.devices[0]);
}

TEST(Health, AWellDeviceHasNoAilment) {
  EXPECT_EQ(ailment_of([](Device&) {}), std::nullopt);
  EXPECT_EQ(ailment_of([](Device& gpu) { gpu.status.xid = 0; }), std::nullopt);
  EXPECT_EQ(ailment_of([](Device& gpu) { gpu.status.remap_pending = false; }), std::nullopt);
  EXPECT_EQ(ailment_of([](Device& gpu) { gpu.status.power_watts = Missing{MissingReason::denied, "no"}; }),
            std::nullopt);
}

TEST(Health, OnlyFatalErrorsCount) {
  for (const int code : {13, 31, 43, 45, 68, 109})
    EXPECT_EQ(ailment_of([&](Device& gpu) { gpu.status.xid = code; }), std::nullopt) << code;
  for (const int code : {48, 63, 79, 94, 119})
    EXPECT_THAT(ailment_of([&](Device& gpu) { gpu.status.xid = code; }), Optional(HasSubstr(std::to_string(code))));
}

TEST(Health, WhatTheDriverAsksForCountsMoreThanItsLastError) {
  for (const RecoveryAction action : {RecoveryAction::reset, RecoveryAction::reboot, RecoveryAction::drain_peers,
                                      RecoveryAction::drain_and_reset, RecoveryAction::other})
    EXPECT_THAT(ailment_of([&](Device& gpu) { gpu.status.recovery_action = action; }), Optional(HasSubstr("driver")));
  EXPECT_EQ(ailment_of([](Device& gpu) {
              gpu.status.recovery_action = RecoveryAction::none;
              gpu.status.xid = 79;
            }),
            std::nullopt)
      << "it was repaired since";
}

TEST(Health, LostAndDriverlessDevicesAreOut) {
  EXPECT_THAT(
      ailment_of([](Device& gpu) { gpu.status.temperature_c = Missing{MissingReason::lost, "fell off the bus"}; }),
      Optional(std::string("is lost: fell off the bus")));
  EXPECT_THAT(ailment_of([](Device& gpu) { gpu.uuid = Missing{MissingReason::no_driver, "nothing drives it"}; }),
              Optional(std::string("has no driver: nothing drives it")));
}

TEST(Health, ALostDeviceOfNoModelIsUnknown) {
  Device gpu;
  EXPECT_FALSE(is_unknown(gpu)) << "it only has no readings";
  gpu.memory_bytes = Missing{MissingReason::lost, "fell off the bus"};
  EXPECT_TRUE(is_unknown(gpu));
  gpu.model = "H100";
  EXPECT_FALSE(is_unknown(gpu));
  gpu.model = "";
  gpu.memory_bytes = Missing{MissingReason::no_driver, "nothing drives it"};
  EXPECT_FALSE(is_unknown(gpu));
}

TEST(Health, MemoryThatWaitsForRepairIsOut) {
  EXPECT_THAT(ailment_of([](Device& gpu) { gpu.status.remap_pending = true; }), Optional(HasSubstr("reset")));
  EXPECT_THAT(ailment_of([](Device& gpu) { gpu.status.remap_failed = true; }), Optional(HasSubstr("repair")));
}

TEST(Health, APartitionIsAsWellAsItsGpu) {
  Inventory inventory = make_gpus(1);
  inventory.devices[0].status.xid = 79;
  inventory.devices.push_back({.id = "part", .kind = DeviceKind::partition, .parent = "gpu:0"});
  EXPECT_THAT(ailment(inventory, inventory.devices[1]), Optional(HasSubstr("part of gpu:0, which had a fatal error")));
}

}  // namespace
}  // namespace remuda::place
