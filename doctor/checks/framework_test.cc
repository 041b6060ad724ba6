#include <gmock/gmock.h>

#include "doctor/checks/checks.h"
#include "doctor/testing/machine.h"

namespace remuda::doctor {
namespace {

using ::testing::HasSubstr;

HostFacts with_torch(const std::string& cuda, const std::string& hip = "", std::vector<std::string> targets = {}) {
  HostFacts facts;
  facts.software.torch = Torch{"/site/torch", "2.5.1", cuda, hip, std::move(targets)};
  return facts;
}

Inventory with_driver(const Reading<std::string>& version, const Reading<std::string>& runtime,
                      const std::string& capability = "8.0") {
  Inventory machine = made_machine(1);
  machine.devices[0].compute_capability = capability;
  machine.drivers = {{.vendor = "NVIDIA", .version = version, .runtime_version = runtime}};
  return machine;
}

TEST(TorchCheck, TellsWhatItIsBuiltFor) {
  EXPECT_THAT(words_of(check_torch(made_machine(1), with_torch("12.4"))), HasSubstr("PyTorch 2.5.1 for CUDA 12.4"));
  EXPECT_EQ(verdicts(check_torch(made_machine(1), with_torch("12.4"))), "PASS");
  EXPECT_EQ(verdicts(check_torch(made_machine(1, "AMD"), with_torch("", "6.2"))), "PASS");
  EXPECT_EQ(verdicts(check_torch({}, with_torch(""))), "PASS");
}

TEST(TorchCheck, WarnsOfABuildForOtherGpus) {
  EXPECT_EQ(verdicts(check_torch(made_machine(1), with_torch(""))), "WARN");
  EXPECT_EQ(verdicts(check_torch(made_machine(1, "AMD"), with_torch("12.4"))), "WARN");
}

TEST(TorchCheck, SaysWhyItIsNotThere) {
  EXPECT_EQ(verdicts(check_torch(made_machine(1), {})), "SKIP");
  HostFacts late;
  late.software.torch = Missing{MissingReason::unsupported, "python3 did not answer within 2.7 s"};
  const Diagnoses all = check_torch(made_machine(1), late);
  EXPECT_EQ(verdicts(all), "SKIP");
  EXPECT_THAT(words_of(all), HasSubstr("did not answer within 2.7 s"));
}

struct RuntimeCase {
  const char* torch;
  const char* driver;
  const char* serves;
  const char* verdict;
};

void PrintTo(const RuntimeCase& one, std::ostream* out) { *out << one.torch << " on " << one.driver; }

class TorchRuntimeCheck : public ::testing::TestWithParam<RuntimeCase> {};

TEST_P(TorchRuntimeCheck, FollowsTheTableOfDrivers) {
  const auto& [torch, driver, serves, verdict] = GetParam();
  EXPECT_EQ(verdicts(check_torch_runtime(with_driver(driver, serves), with_torch(torch))), verdict);
}

INSTANTIATE_TEST_SUITE_P(Rules, TorchRuntimeCheck,
                         ::testing::Values(RuntimeCase{"12.4", "550.54.14", "12.4", "PASS"},
                                           RuntimeCase{"11.8", "580.65.06", "13.0", "PASS"},
                                           RuntimeCase{"12.4", "535.161.08", "12.2", "PASS"},  // minor version
                                           RuntimeCase{"12.4", "525.60.13", "12.0", "PASS"},   // the oldest
                                           RuntimeCase{"12.4", "525.60.12", "12.0", "FAIL"},
                                           RuntimeCase{"12.1", "470.82.01", "11.4", "FAIL"},
                                           RuntimeCase{"13.0", "575.57.08", "12.9", "FAIL"},
                                           RuntimeCase{"11.8", "450.80.02", "11.0", "PASS"},
                                           RuntimeCase{"10.2", "418.39", "10.1", "FAIL"},
                                           RuntimeCase{"14.0", "700.1", "13.9", "SKIP"}));

TEST(TorchRuntimeCheckSkips, WhatIsNotKnown) {
  EXPECT_EQ(verdicts(check_torch_runtime({}, with_torch("12.4"))), "SKIP");
  EXPECT_EQ(verdicts(check_torch_runtime(made_machine(1), {})), "SKIP");
  EXPECT_EQ(verdicts(check_torch_runtime(made_machine(1), with_torch(""))), "SKIP");
  EXPECT_EQ(verdicts(check_torch_runtime(made_machine(1), with_torch("12.4"))), "SKIP");
  EXPECT_EQ(verdicts(check_torch_runtime(with_driver(kForbidden, kForbidden), with_torch("12.4"))), "SKIP");
}

std::string fit(const std::string& capability, std::vector<std::string> targets, const std::string& serves = "12.4") {
  return verdicts(check_torch_targets(with_driver("550.54.14", serves, capability), with_torch("12.4", "", targets)));
}

TEST(TorchTargetsCheck, FollowsTheRulesOfBinaryCompatibility) {
  EXPECT_EQ(fit("8.0", {"sm_70", "sm_80"}), "PASS");
  EXPECT_EQ(fit("8.6", {"sm_80"}), "PASS");
  EXPECT_EQ(fit("8.0", {"sm_86"}), "FAIL");
  EXPECT_EQ(fit("9.0", {"sm_80"}), "FAIL");
  EXPECT_EQ(fit("6.1", {"sm_70", "compute_70"}), "FAIL");
  EXPECT_EQ(fit("12.0", {"sm_90", "sm_120"}), "PASS");
  EXPECT_EQ(fit("9.0", {"sm_90a"}), "PASS");
  EXPECT_EQ(fit("12.1", {"sm_120a"}), "FAIL");
  EXPECT_EQ(fit("10.3", {"sm_100f"}), "PASS");
  EXPECT_EQ(fit("8.0", {"gfx90a"}), "FAIL");
}

TEST(TorchTargetsCheck, WarnsOfWhatIsCompiledAtTheStart) {
  EXPECT_EQ(fit("9.0", {"sm_80", "compute_80"}), "WARN");
  EXPECT_EQ(fit("9.0", {"compute_80"}, "12.2"), "FAIL") << "the driver cannot compile newer PTX";
}

TEST(TorchTargetsCheck, ComparesNamesOnAmd) {
  Inventory machine = made_machine(1, "AMD");
  const HostFacts facts = with_torch("", "6.2", {"gfx90a", "gfx942"});
  EXPECT_EQ(verdicts(check_torch_targets(machine, facts)), "SKIP");
  machine.devices[0].architecture = "gfx90a:sramecc+:xnack-";
  EXPECT_EQ(verdicts(check_torch_targets(machine, facts)), "PASS");
  machine.devices[0].architecture = "gfx1031";
  EXPECT_EQ(verdicts(check_torch_targets(machine, facts)), "FAIL");
}

TEST(TorchTargetsCheck, SkipsWhatIsNotKnown) {
  EXPECT_EQ(verdicts(check_torch_targets({}, with_torch("12.4"))), "SKIP");
  EXPECT_EQ(verdicts(check_torch_targets(made_machine(1), {})), "SKIP");
  HostFacts facts = with_torch("12.4");
  facts.software.torch = Torch{"/site/torch", "2.5.1", "12.4", "", kForbidden};
  EXPECT_EQ(verdicts(check_torch_targets(made_machine(1), facts)), "SKIP");
  EXPECT_EQ(verdicts(check_torch_targets(made_machine(1, "AMD"), with_torch("12.4", "", {"sm_80"}))), "SKIP");
  EXPECT_EQ(verdicts(check_torch_targets(made_machine(1), with_torch("12.4", "", {"sm_80"}))), "SKIP");
}

TEST(CollectivesCheck, NamesTheLibrary) {
  HostFacts facts;
  facts.software.nccl = Library{"/site/nvidia/nccl/lib/libnccl.so.2", "2.21.5"};
  facts.software.rccl = Missing{MissingReason::unsupported, "no librccl.so.1 was found"};
  EXPECT_THAT(words_of(check_collectives(made_machine(1), facts)), HasSubstr("NCCL 2.21.5"));
  EXPECT_EQ(verdicts(check_collectives(made_machine(1), facts)), "PASS");
  EXPECT_EQ(verdicts(check_collectives(made_machine(1, "AMD"), facts)), "SKIP");
  EXPECT_EQ(verdicts(check_collectives({}, facts)), "SKIP");
  facts.software.nccl = Library{"/usr/lib/libnccl.so.2", kForbidden};
  EXPECT_THAT(words_of(check_collectives(made_machine(1), facts)), HasSubstr("NCCL in /usr/lib/libnccl.so.2"));
}

TEST(CollectivesCheck, PyTorchMayHoldItWithin) {
  HostFacts facts = with_torch("12.4");
  facts.software.nccl = Missing{MissingReason::unsupported, "no libnccl.so.2 was found"};
  EXPECT_THAT(words_of(check_collectives(made_machine(1), facts)), HasSubstr("may hold it within"));
}

TEST(DeviceOrderCheck, WarnsOfUnlikeModelsAlone) {
  Inventory machine = made_machine(2);
  HostFacts facts;
  facts.device_order = "";
  EXPECT_EQ(verdicts(check_device_order(machine, facts)), "PASS");
  machine.devices[1].model = "RTX 4090";
  EXPECT_EQ(verdicts(check_device_order(machine, facts)), "WARN");
  facts.device_order = "PCI_BUS_ID";
  EXPECT_EQ(verdicts(check_device_order(machine, facts)), "PASS");
  EXPECT_EQ(verdicts(check_device_order(machine, {})), "SKIP");
  machine.devices[1].model = "";
  EXPECT_EQ(verdicts(check_device_order(machine, facts)), "SKIP");
  EXPECT_EQ(verdicts(check_device_order(made_machine(2, "AMD"), facts)), "SKIP");
}

TEST(TorchStoreCheck, KnowsTheBuildsWithoutLibuv) {
  EXPECT_EQ(verdicts(check_torch_store({}, {})), "SKIP");
  const auto judged = [](const std::string& version, const std::string& folder) {
    HostFacts facts;
    facts.software.torch = Torch{.folder = folder, .version = version};
    return check_torch_store({}, facts);
  };
  const std::string debian = "/usr/lib/python3/dist-packages/torch";
  EXPECT_EQ(verdicts(judged("1.13.1", debian)), "PASS");
  EXPECT_EQ(verdicts(judged("2.3.0", debian)), "PASS");
  EXPECT_EQ(verdicts(judged("2.6.0+debian", debian)), "WARN");
  EXPECT_THAT(words_of(judged("2.6.0+debian", debian)), ::testing::HasSubstr("export USE_LIBUV=0"));
  EXPECT_EQ(verdicts(judged("2.6.0", "/home/ada/env/lib/python3.12/site-packages/torch")), "PASS");
}

}  // namespace
}  // namespace remuda::doctor
