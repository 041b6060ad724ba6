#include <gmock/gmock.h>

#include "doctor/checks/checks.h"
#include "doctor/testing/machine.h"

namespace remuda::doctor {
namespace {

using ::testing::HasSubstr;

TEST(PersistenceCheck, WarnsWhereItIsOff) {
  Inventory machine = made_machine(1);
  EXPECT_EQ(verdicts(check_persistence(machine, {})), "SKIP");
  machine.devices[0].persistence = true;
  EXPECT_EQ(verdicts(check_persistence(machine, {})), "PASS");
  machine.devices[0].persistence = false;
  EXPECT_EQ(verdicts(check_persistence(machine, {})), "WARN");
  EXPECT_THAT(words_of(check_persistence(machine, {})), HasSubstr("nvidia-smi -i 0000:20:00.0 -pm 1"));
}

TEST(ComputeModeCheck, WantsProcessesToComeIn) {
  Inventory machine = made_machine(1);
  EXPECT_EQ(verdicts(check_compute_mode(machine, {})), "SKIP");
  machine.devices[0].compute_mode = ComputeMode::prohibited;
  EXPECT_EQ(verdicts(check_compute_mode(machine, {})), "FAIL");
  machine.devices[0].compute_mode = ComputeMode::exclusive;
  EXPECT_EQ(verdicts(check_compute_mode(machine, {})), "PASS");
}

TEST(ComputeModeCheck, WantsASharingDaemonToBeTheOnlyDoor) {
  Inventory machine = made_machine(1);
  machine.devices[0].compute_mode = ComputeMode::shared;
  HostFacts facts;
  EXPECT_EQ(verdicts(check_compute_mode(machine, facts)), "PASS");
  facts.sharing_daemon = true;
  EXPECT_EQ(verdicts(check_compute_mode(machine, facts)), "WARN");
  machine.devices[0].compute_mode = ComputeMode::exclusive;
  EXPECT_EQ(verdicts(check_compute_mode(machine, facts)), "PASS");
}

Device made_partition(int index, bool busy) {
  Device part;
  part.id = "MIG-" + std::to_string(index);
  part.kind = DeviceKind::partition;
  part.index = index;
  part.parent = "GPU-0";
  part.status.processes = busy ? std::vector<Process>{{.pid = 1}} : std::vector<Process>{};
  return part;
}

TEST(PartitionsCheck, FindsLeftovers) {
  Inventory machine = made_machine(1);
  EXPECT_EQ(verdicts(check_partitions(machine, {})), "SKIP");
  machine.devices[0].partitioned = false;
  EXPECT_EQ(verdicts(check_partitions(machine, {})), "PASS");
  machine.devices[0].partitioned = true;
  EXPECT_EQ(verdicts(check_partitions(machine, {})), "FAIL");
  machine.devices.push_back(made_partition(0, false));
  EXPECT_EQ(verdicts(check_partitions(machine, {})), "WARN");
  machine.devices.push_back(made_partition(1, true));
  EXPECT_EQ(verdicts(check_partitions(machine, {})), "PASS");
}

TEST(PartitionsCheck, ThinksNothingOfPartitionsThatDoNotTell) {
  Inventory machine = made_machine(1);
  machine.devices[0].partitioned = true;
  machine.devices.push_back(made_partition(0, false));
  machine.devices.back().status.processes = kForbidden;
  EXPECT_EQ(verdicts(check_partitions(machine, {})), "PASS");
}

TEST(OrphansCheck, FindsProcessesThatAreGone) {
  Inventory machine = made_machine(1);
  HostFacts facts;
  EXPECT_EQ(verdicts(check_orphans({}, facts)), "SKIP");
  EXPECT_EQ(verdicts(check_orphans(machine, facts)), "SKIP");
  facts.gone_pids = std::vector{42};
  facts.host_pids = true;
  EXPECT_EQ(verdicts(check_orphans(machine, facts)), "SKIP");
  machine.devices[0].status.processes = std::vector<Process>{{.pid = 41}};
  EXPECT_EQ(verdicts(check_orphans(machine, facts)), "PASS");
  machine.devices[0].status.processes = std::vector<Process>{{.pid = 41}, {.pid = 42}};
  EXPECT_EQ(verdicts(check_orphans(machine, facts)), "WARN");
  EXPECT_THAT(words_of(check_orphans(machine, facts)), HasSubstr("a process that no longer lives: 42"));
  facts.host_pids = false;
  EXPECT_EQ(verdicts(check_orphans(machine, facts)), "SKIP") << "another namespace's ids say nothing";
}

}  // namespace
}  // namespace remuda::doctor
