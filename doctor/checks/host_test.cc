#include <gmock/gmock.h>

#include "doctor/checks/checks.h"
#include "doctor/testing/machine.h"

namespace remuda::doctor {
namespace {

using ::testing::HasSubstr;

HostFacts host(bool container = false) {
  HostFacts facts;
  facts.container = container;
  return facts;
}

Diagnoses shared_memory(int64_t bytes, bool container = false) {
  HostFacts facts = host(container);
  facts.shm_bytes = bytes;
  return check_shared_memory({}, facts);
}

TEST(SharedMemoryCheck, WantsAGibibyte) {
  EXPECT_EQ(verdicts(check_shared_memory({}, {})), "SKIP");
  EXPECT_EQ(verdicts(shared_memory(int64_t{8} << 30)), "PASS");
  EXPECT_EQ(verdicts(shared_memory(512 << 20)), "WARN");
  EXPECT_EQ(verdicts(shared_memory(64 << 20)), "FAIL");
  EXPECT_THAT(words_of(shared_memory(64 << 20)), HasSubstr("sudo mount -o remount"));
  EXPECT_THAT(words_of(shared_memory(64 << 20, true)), HasSubstr("--shm-size"));
}

Diagnoses locked_memory(int64_t bytes, int gpus) {
  HostFacts facts = host();
  facts.memlock_bytes = bytes;
  return check_locked_memory(made_machine(gpus), facts);
}

TEST(LockedMemoryCheck, MattersWhereDevicesNeedIt) {
  EXPECT_EQ(verdicts(check_locked_memory({}, {})), "SKIP");
  EXPECT_EQ(verdicts(locked_memory(8 << 20, 0)), "SKIP");
  EXPECT_EQ(verdicts(locked_memory(8 << 20, 1)), "WARN");
  EXPECT_EQ(verdicts(locked_memory(int64_t{2} << 30, 1)), "PASS");
  EXPECT_EQ(verdicts(locked_memory(kUnlimited, 0)), "PASS");
  Inventory with_nic;
  with_nic.nics.push_back({.name = "mlx5_0"});
  HostFacts facts = host(true);
  facts.memlock_bytes = 65536;
  EXPECT_THAT(words_of(check_locked_memory(with_nic, facts)), HasSubstr("--ulimit memlock=-1"));
}

Diagnoses open_files(int64_t files, bool container = false) {
  HostFacts facts = host(container);
  facts.open_files = files;
  return check_open_files({}, facts);
}

TEST(OpenFilesCheck, WantsThousands) {
  EXPECT_EQ(verdicts(check_open_files({}, {})), "SKIP");
  EXPECT_EQ(verdicts(open_files(1024)), "WARN");
  EXPECT_EQ(verdicts(open_files(4096)), "PASS");
  EXPECT_EQ(verdicts(open_files(kUnlimited)), "PASS");
  EXPECT_THAT(words_of(open_files(1024)), HasSubstr("ulimit -n"));
  EXPECT_THAT(words_of(open_files(1024, true)), HasSubstr("--ulimit nofile"));
}

TEST(PidNamespaceCheck, WantsTheHosts) {
  HostFacts facts = host(true);
  EXPECT_EQ(verdicts(check_pid_namespace({}, facts)), "SKIP");
  facts.host_pids = true;
  EXPECT_EQ(verdicts(check_pid_namespace({}, facts)), "PASS");
  facts.host_pids = false;
  EXPECT_EQ(verdicts(check_pid_namespace({}, facts)), "WARN");
  EXPECT_THAT(words_of(check_pid_namespace({}, facts)), HasSubstr("--pid=host"));
  facts.container = false;
  EXPECT_THAT(words_of(check_pid_namespace({}, facts)), Not(HasSubstr("--pid=host")));
}

Diagnoses confinement(int cgroup, bool devices, int gpus, bool container = false) {
  HostFacts facts = host(container);
  facts.confinement = JobConfinement{cgroup, devices, devices ? "" : "no permission"};
  return check_confinement(made_machine(gpus), facts);
}

TEST(ConfinementCheck, WantsDeviceControlWhereThereIsMoreThanOneGpu) {
  EXPECT_EQ(verdicts(check_confinement({}, {})), "SKIP");
  EXPECT_EQ(verdicts(confinement(2, true, 8)), "PASS");
  EXPECT_THAT(words_of(confinement(2, true, 8)), HasSubstr("a cgroup (version 2) with device control"));
  EXPECT_EQ(verdicts(confinement(2, false, 1)), "PASS");
  EXPECT_EQ(verdicts(confinement(0, false, 0)), "PASS");
  EXPECT_EQ(verdicts(confinement(2, false, 2)), "WARN");
  EXPECT_EQ(verdicts(confinement(0, false, 2)), "WARN");
}

TEST(ConfinementCheck, LeavesThatToAnAgent) {
  HostFacts facts = host(false);
  facts.confinement = JobConfinement{.by_agent = true};
  EXPECT_EQ(verdicts(check_confinement(made_machine(8), facts)), "PASS");
  EXPECT_THAT(words_of(check_confinement(made_machine(8), facts)), HasSubstr("the agent confines each job"));
}

TEST(ConfinementCheck, SaysWhatToDo) {
  EXPECT_THAT(words_of(confinement(2, false, 2)), HasSubstr("without device control: no permission"));
  EXPECT_THAT(words_of(confinement(2, false, 2)), HasSubstr("only root"));
  EXPECT_THAT(words_of(confinement(2, false, 2, true)), HasSubstr("--cap-add BPF"));
  EXPECT_THAT(words_of(confinement(0, false, 2)), HasSubstr("Delegate=yes"));
  EXPECT_THAT(words_of(confinement(0, false, 2, true)), HasSubstr("writable cgroups"));
}

TEST(PoolCheck, WarnsWhereAUserIsKeptOutOfTheSharedOne) {
  HostFacts facts = host();
  EXPECT_EQ(verdicts(check_pool({}, facts)), "SKIP");
  facts.pool = PoolUse{.folder = "/var/lib/remuda", .is_shared = true};
  EXPECT_EQ(verdicts(check_pool({}, facts)), "PASS");
  EXPECT_THAT(words_of(check_pool({}, facts)), HasSubstr("the jobs of all users are in one pool, /var/lib/remuda"));
  facts.pool = PoolUse{.folder = "/home/ada/pool"};
  EXPECT_EQ(verdicts(check_pool({}, facts)), "PASS");
  facts.pool = PoolUse{.folder = "/home/ada/pool", .obstacle = "ada may not", .remedy = "sudo usermod"};
  EXPECT_EQ(verdicts(check_pool({}, facts)), "WARN");
  EXPECT_THAT(words_of(check_pool({}, facts)), HasSubstr("ada may not | sudo usermod"));
}

}  // namespace
}  // namespace remuda::doctor
