#include <gmock/gmock.h>

#include "doctor/checks/checks.h"
#include "doctor/testing/machine.h"

namespace remuda::doctor {
namespace {

using ::testing::HasSubstr;

TEST(PcieCheck, ComparesWidthAndSlot) {
  Inventory machine = made_machine(1);
  Device& gpu = machine.devices[0];
  EXPECT_EQ(verdicts(check_pcie(machine, {})), "SKIP");
  gpu.pcie_width_max = 16;
  gpu.status.pcie_width = 16;
  EXPECT_EQ(verdicts(check_pcie(machine, {})), "PASS");
  gpu.pcie_generation_max = 3;
  gpu.pcie_generation_card = 4;
  EXPECT_THAT(words_of(check_pcie(machine, {})), HasSubstr("could do PCIe generation 4, and its slot does 3"));
  gpu.status.pcie_width = 8;
  EXPECT_EQ(verdicts(check_pcie(machine, {})), "WARN");
  EXPECT_THAT(words_of(check_pcie(machine, {})), HasSubstr("runs on 8 of its 16 PCIe lanes"));
}

TEST(PcieCheck, ThinksNothingOfAnIdleGpusLowGeneration) {
  Inventory machine = made_machine(1);
  machine.devices[0].pcie_generation_max = machine.devices[0].pcie_generation_card = 4;
  machine.devices[0].status.pcie_generation = 1;
  EXPECT_EQ(verdicts(check_pcie(machine, {})), "PASS");
}

Inventory joined(PeerAccess access) {
  Inventory machine = made_machine(2);
  machine.links.push_back({.a = "GPU-1", .b = "GPU-0", .path = Path::phb, .peer_access = access});
  return machine;
}

HostFacts with_slots(const Reading<bool>& translates, const Reading<std::vector<std::string>>& redirects) {
  HostFacts facts;
  facts.slots = std::vector<GpuSlot>{{"0000:20:00.0", "nvidia", translates, redirects}};
  return facts;
}

TEST(PeerAccessCheck, TellsWhatForbidsIt) {
  EXPECT_EQ(verdicts(check_peer_access(made_machine(1), {})), "SKIP");
  EXPECT_EQ(verdicts(check_peer_access(made_machine(2), {})), "SKIP");
  EXPECT_EQ(verdicts(check_peer_access(joined(PeerAccess::ok), {})), "PASS");
  const Diagnoses all = check_peer_access(joined(PeerAccess::gpu), {});
  EXPECT_EQ(verdicts(all), "WARN");
  EXPECT_THAT(words_of(all),
              HasSubstr("1 of 1 pair of GPUs cannot reach each other's memory, gpu:0 and gpu:1 over PHB"));
  EXPECT_THAT(words_of(all), HasSubstr("these models do not offer it"));
  EXPECT_EQ(verdicts(check_peer_access(joined(PeerAccess::chipset), {})), "WARN");
  EXPECT_EQ(verdicts(check_peer_access(joined(PeerAccess::unknown), {})), "WARN");
}

TEST(PeerAccessCheck, PointsAtIommuAndAcs) {
  const HostFacts acs = with_slots(false, std::vector<std::string>{"0000:21:00.0"});
  EXPECT_THAT(words_of(check_peer_access(joined(PeerAccess::topology), acs)), HasSubstr("IOMMU or ACS"));
  EXPECT_THAT(words_of(check_peer_access(joined(PeerAccess::gpu), acs)), Not(HasSubstr("IOMMU or ACS")));
}

TEST(IsolationCheck, NamesIommuAndSwitchPorts) {
  const Inventory machine = made_machine(2);
  const std::vector<std::string> none, ports{"0000:21:00.0"};
  EXPECT_EQ(verdicts(check_isolation(made_machine(1), with_slots(true, none))), "SKIP");
  EXPECT_EQ(verdicts(check_isolation(machine, {})), "SKIP");
  EXPECT_EQ(verdicts(check_isolation(machine, with_slots(false, none))), "PASS");
  EXPECT_EQ(verdicts(check_isolation(machine, with_slots(false, kForbidden))), "SKIP");
  EXPECT_EQ(verdicts(check_isolation(machine, with_slots(kForbidden, none))), "SKIP");
  EXPECT_EQ(verdicts(check_isolation(machine, with_slots(true, ports))), "WARN WARN");
  EXPECT_THAT(words_of(check_isolation(machine, with_slots(false, ports))), HasSubstr("setpci -s 0000:21:00.0"));
}

Inventory over_nodes(const std::vector<int>& nodes, int count) {
  Inventory machine = made_machine(static_cast<int>(nodes.size()));
  for (size_t i = 0; i < nodes.size(); ++i) machine.devices[i].numa_node = nodes[i];
  for (int node = 0; node < count; ++node) machine.numa.push_back({.node = node, .cores = std::vector{node}});
  return machine;
}

TEST(NumaBalanceCheck, WantsEqualNumbers) {
  EXPECT_EQ(verdicts(check_numa_balance(made_machine(1), {})), "SKIP");
  EXPECT_EQ(verdicts(check_numa_balance(made_machine(2), {})), "SKIP");
  EXPECT_EQ(verdicts(check_numa_balance(over_nodes({0, 0}, 1), {})), "PASS");
  EXPECT_EQ(verdicts(check_numa_balance(over_nodes({0, 0, 1, 1}, 2), {})), "PASS");
  EXPECT_EQ(verdicts(check_numa_balance(over_nodes({3, 3, 1, 1}, 8), {})), "PASS");
  EXPECT_EQ(verdicts(check_numa_balance(over_nodes({0, 0, 1}, 2), {})), "PASS");
  EXPECT_EQ(verdicts(check_numa_balance(over_nodes({0, 0, 0, 1}, 2), {})), "WARN");
  EXPECT_EQ(verdicts(check_numa_balance(over_nodes({0, 0}, 2), {})), "WARN");
}

TEST(NumaMemoryCheck, FindsANodeWithoutMemory) {
  EXPECT_EQ(verdicts(check_numa_memory({}, {})), "SKIP");
  Inventory machine;
  machine.numa.push_back({.node = 0, .cores = std::vector{0}, .memory_bytes = 1 << 30});
  machine.numa.push_back({.node = 2, .cores = std::vector<int>{}, .memory_bytes = 0});  // a GPU's memory, offline
  EXPECT_EQ(verdicts(check_numa_memory(machine, {})), "PASS");
  machine.numa.push_back({.node = 1, .cores = std::vector{1}, .memory_bytes = 0});
  EXPECT_EQ(verdicts(check_numa_memory(machine, {})), "WARN");
}

TEST(CoresCheck, WantsOneNearCoreAtLeast) {
  Inventory machine = made_machine(1);
  HostFacts facts;
  EXPECT_EQ(verdicts(check_cores({}, facts)), "SKIP");
  EXPECT_EQ(verdicts(check_cores(machine, facts)), "SKIP");
  facts.cores = std::vector{0, 1};
  EXPECT_EQ(verdicts(check_cores(machine, facts)), "SKIP");
  machine.devices[0].cores = std::vector<int>{};
  EXPECT_EQ(verdicts(check_cores(machine, facts)), "SKIP");
  machine.devices[0].cores = std::vector{1, 2};
  EXPECT_EQ(verdicts(check_cores(machine, facts)), "PASS");
  machine.devices[0].cores = std::vector{2, 3};
  EXPECT_EQ(verdicts(check_cores(machine, facts)), "WARN");
  EXPECT_THAT(words_of(check_cores(machine, facts)), HasSubstr("taskset -c 2-3"));
}

}  // namespace
}  // namespace remuda::doctor
