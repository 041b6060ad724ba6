#include <gmock/gmock.h>

#include "doctor/checks/checks.h"
#include "doctor/testing/machine.h"

namespace remuda::doctor {
namespace {

using ::testing::HasSubstr;

TEST(OverGpus, TellsOfThoseThatAreUnwell) {
  Inventory machine = made_machine(3);
  for (Device& device : machine.devices) device.status.ecc_uncorrected = 0;
  EXPECT_THAT(words_of(check_ecc(machine, {})), HasSubstr("3 GPUs: no uncorrected memory errors"));
  machine.devices[2].status.ecc_uncorrected = kForbidden;
  EXPECT_THAT(words_of(check_ecc(machine, {})), HasSubstr("2 of 3 GPUs: no uncorrected memory errors; of the others"));
  machine.devices[1].status.ecc_uncorrected = 4;
  const Diagnoses all = check_ecc(machine, {});
  EXPECT_EQ(verdicts(all), "FAIL");
  EXPECT_EQ(all[0].device, "GPU-1");
  EXPECT_THAT(words_of(all), HasSubstr("gpu:1 (A100) has had 4 memory errors"));
  EXPECT_THAT(words_of(all), HasSubstr("--gpu-reset -i 0000:21:00.0"));
}

TEST(OverGpus, SkipsWithTheFirstReason) {
  Inventory machine = made_machine(1);
  EXPECT_THAT(words_of(check_ecc(machine, {})), HasSubstr("a recorded machine does not report it"));
  machine.devices[0].status.ecc_uncorrected = kForbidden;
  EXPECT_THAT(words_of(check_ecc(machine, {})), HasSubstr("only root may ask"));
  EXPECT_EQ(verdicts(check_ecc(machine, {})), "SKIP");
  EXPECT_EQ(verdicts(check_ecc({}, {})), "SKIP");
}

TEST(LostCheck, SeesItInAnyReading) {
  Inventory machine = made_machine(2);
  EXPECT_EQ(verdicts(check_lost(machine, {})), "SKIP") << "nothing tells how they are doing";
  for (Device& device : machine.devices) device.status.temperature_c = 40;
  EXPECT_EQ(verdicts(check_lost(machine, {})), "PASS");
  machine.devices[1].status.power_watts = Missing{MissingReason::lost, "GPU is lost"};
  EXPECT_EQ(verdicts(check_lost(machine, {})), "FAIL");
  machine = made_machine(1);
  machine.devices[0].uuid = Missing{MissingReason::lost, "GPU is lost"};
  EXPECT_EQ(verdicts(check_lost(machine, {})), "FAIL");
}

std::string remapping(const Reading<bool>& pending, const Reading<bool>& failed) {
  Inventory machine = made_machine(1);
  machine.devices[0].status.remap_pending = pending;
  machine.devices[0].status.remap_failed = failed;
  return verdicts(check_row_remapping(machine, {}));
}

TEST(RowRemappingCheck, TellsPendingFromFailed) {
  EXPECT_EQ(remapping(false, false), "PASS");
  EXPECT_EQ(remapping(true, false), "WARN");
  EXPECT_EQ(remapping(true, true), "FAIL");
  EXPECT_EQ(remapping({}, {}), "SKIP");
}

std::string xid(int code) {
  Inventory machine = made_machine(1);
  machine.devices[0].status.xid = code;
  return verdicts(check_xid(machine, {}));
}

TEST(XidCheck, KnowsProgramsFaultsFromTheCards) {
  EXPECT_EQ(xid(0), "PASS");
  EXPECT_EQ(xid(31), "WARN");
  EXPECT_EQ(xid(79), "FAIL");
  EXPECT_EQ(xid(999), "WARN");
  EXPECT_EQ(verdicts(check_xid(made_machine(1), {})), "SKIP");
}

std::string throttled(std::vector<std::string> reasons) {
  Inventory machine = made_machine(1);
  machine.devices[0].status.throttle = std::move(reasons);
  return verdicts(check_throttling(machine, {}));
}

TEST(ThrottlingCheck, WarnsOfHeatAndPowerSupply) {
  EXPECT_EQ(throttled({}), "PASS");
  EXPECT_EQ(throttled({"idle", "power_cap"}), "PASS");
  EXPECT_EQ(throttled({"hardware", "hardware_thermal"}), "WARN");
  EXPECT_EQ(throttled({"thermal"}), "WARN");
  EXPECT_EQ(throttled({"power_brake"}), "WARN");
  EXPECT_EQ(throttled({"hardware"}), "WARN");
  EXPECT_EQ(verdicts(check_throttling(made_machine(1), {})), "SKIP");
}

TEST(RecoveryCheck, SaysWhatTheDriverAsksFor) {
  Inventory machine = made_machine(1);
  EXPECT_EQ(verdicts(check_recovery(machine, {})), "SKIP");
  const auto asked = [&](RecoveryAction action) {
    machine.devices[0].status.recovery_action = action;
    return check_recovery(machine, {});
  };
  EXPECT_EQ(verdicts(asked(RecoveryAction::none)), "PASS");
  EXPECT_EQ(verdicts(asked(RecoveryAction::reset)), "FAIL");
  EXPECT_THAT(words_of(asked(RecoveryAction::reset)), ::testing::HasSubstr("sudo nvidia-smi --gpu-reset"));
  EXPECT_EQ(verdicts(asked(RecoveryAction::reboot)), "FAIL");
  EXPECT_EQ(verdicts(asked(RecoveryAction::drain_peers)), "FAIL");
  EXPECT_EQ(verdicts(asked(RecoveryAction::drain_and_reset)), "WARN");
  EXPECT_EQ(verdicts(asked(RecoveryAction::other)), "FAIL");
}

}  // namespace
}  // namespace remuda::doctor
