#include <gmock/gmock.h>

#include "doctor/checks/checks.h"
#include "doctor/testing/machine.h"

namespace remuda::doctor {
namespace {

using ::testing::HasSubstr;

TEST(ProbeCheck, TellsEachProbesReason) {
  Inventory machine;
  machine.probes = {{"nvml", 2, ""}, {"amd", 0, "no /sys/class/kfd"}, {"pci", 1, "1 GPU did not answer"}};
  const Diagnoses all = check_probes(machine, {});
  EXPECT_EQ(verdicts(all), "PASS SKIP WARN");
  EXPECT_THAT(words_of(all), HasSubstr("nvml: 2 devices"));
  EXPECT_THAT(words_of(all), HasSubstr("amd: no /sys/class/kfd"));
  EXPECT_THAT(words_of(all), HasSubstr("1 GPU did not answer"));
}

TEST(ProbeCheck, ADriverThatDoesNotAnswerIsNoMachineWithoutGpus) {
  Inventory machine;
  machine.probes = {{"nvml", 0, "library and kernel module are of different versions", true}};
  EXPECT_EQ(verdicts(check_probes(machine, {})), "FAIL");
  for (const auto check : {check_driver, check_driven, check_driver_match, check_device_files})
    EXPECT_EQ(words_of(check(machine, {})), words_of({skip("no GPU can be seen")}));
}

TEST(ProbeCheck, ARecordingWithoutProbesDoesNotTell) { EXPECT_EQ(verdicts(check_probes({}, {})), "SKIP"); }

TEST(DriverCheck, NamesDriverAndRuntime) {
  Inventory machine = made_machine(1);
  EXPECT_EQ(verdicts(check_driver(machine, {})), "SKIP");
  machine.drivers = {{.vendor = "NVIDIA", .version = "535.161.08", .runtime_version = "12.2"}};
  const Diagnoses all = check_driver(machine, {});
  EXPECT_EQ(verdicts(all), "PASS");
  EXPECT_THAT(words_of(all), HasSubstr("NVIDIA 535.161.08, serves runtimes up to 12.2"));
}

TEST(DriverCheck, SaysWhyTheVersionIsMissing) {
  Inventory machine = made_machine(1);
  machine.drivers = {{.vendor = "NVIDIA", .version = kForbidden}};
  const Diagnoses all = check_driver(machine, {});
  EXPECT_EQ(verdicts(all), "SKIP");
  EXPECT_THAT(words_of(all), HasSubstr("only root may ask"));
}

class DrivenCheck : public ::testing::Test {
 protected:
  DrivenCheck() { machine_.devices[0].memory_bytes = Missing{MissingReason::no_driver, "nothing drives it"}; }
  Diagnoses with_bound(const std::string& driver) {
    HostFacts facts;
    facts.slots = std::vector<GpuSlot>{{.pci = "0000:20:00.0", .bound_driver = driver}};
    return check_driven(machine_, facts);
  }
  Inventory machine_ = made_machine(1);
};

TEST_F(DrivenCheck, PassesGpusWithADriver) {
  EXPECT_EQ(verdicts(check_driven(made_machine(2), {})), "PASS");
  EXPECT_EQ(verdicts(check_driven({}, {})), "SKIP");
}

TEST_F(DrivenCheck, NamesNouveau) {
  machine_.devices[0].memory_bytes =
      Missing{MissingReason::unsupported, "the nouveau driver reports nothing of its use"};
  const Diagnoses all = with_bound("nouveau");
  EXPECT_EQ(verdicts(all), "FAIL");
  EXPECT_THAT(words_of(all), HasSubstr("nouveau, which cannot compute"));
  EXPECT_EQ(all[0].device, "GPU-0");
}

TEST_F(DrivenCheck, ADriverThatDoesNotWorkIsNone) {
  machine_.devices[0].memory_bytes = Missing{MissingReason::no_driver, "library and module are of different versions"};
  const Diagnoses all = with_bound("nvidia");
  EXPECT_EQ(verdicts(all), "FAIL");
  EXPECT_THAT(words_of(all), HasSubstr("has the driver nvidia, but library and module"));
}

TEST_F(DrivenCheck, ADriverThatSaysLostIsThere) {
  machine_.devices[0].memory_bytes = Missing{MissingReason::lost, "fallen off the bus"};
  EXPECT_EQ(verdicts(check_driven(machine_, {})), "PASS");
}

TEST_F(DrivenCheck, ARecordingThatDoesNotTellIsSkipped) {
  Inventory silent;
  silent.devices.push_back(Device{.id = "GPU-0", .kind = DeviceKind::gpu});
  EXPECT_EQ(verdicts(check_driven(silent, {})), "SKIP");
}

TEST_F(DrivenCheck, LeavesVirtualMachinesTheirGpus) { EXPECT_EQ(verdicts(with_bound("vfio-pci")), "WARN"); }

TEST_F(DrivenCheck, SaysWhichModuleToLoad) {
  EXPECT_THAT(words_of(with_bound("")), HasSubstr("sudo modprobe nvidia"));
  machine_.devices[0].vendor = "AMD";
  EXPECT_THAT(words_of(check_driven(machine_, {})), HasSubstr("sudo modprobe amdgpu"));
  machine_.devices[0].vendor = "ASPEED";
  EXPECT_EQ(verdicts(with_bound("")), "SKIP");
}

std::string match(const Reading<std::string>& library, const Reading<std::string>& module) {
  Inventory machine = made_machine(1);
  machine.drivers = {{.vendor = "NVIDIA", .module_version = module, .library_version = library}};
  return verdicts(check_driver_match(machine, {}));
}

TEST(DriverMatchCheck, ComparesLibraryAndModule) {
  EXPECT_EQ(match("535.161.08", "535.161.08"), "PASS");
  EXPECT_EQ(match("12.535.161.08", "535.161.08"), "PASS");
  EXPECT_EQ(match("12.550.54.14", "535.161.08"), "FAIL");
  EXPECT_EQ(match(kForbidden, "535.161.08"), "SKIP");
  EXPECT_EQ(match("535.161.08", {}), "SKIP");
  EXPECT_EQ(verdicts(check_driver_match({}, {})), "SKIP");
}

Diagnoses with_files(std::vector<DeviceFile> files, bool container = false) {
  return check_device_files(made_machine(1), HostFacts{.device_files = std::move(files), .container = container});
}

TEST(DeviceFilesCheck, PassesFilesThisUserMayUse) {
  EXPECT_EQ(verdicts(with_files({{"/dev/nvidiactl", true, "root"}, {"/dev/nvidia-uvm", true, "root"}})), "PASS");
  EXPECT_EQ(verdicts(check_device_files({}, {})), "SKIP");
  EXPECT_EQ(verdicts(check_device_files(made_machine(1), {})), "SKIP");
}

TEST(DeviceFilesCheck, NamesTheGroupThatMay) {
  const Diagnoses all = with_files({{"/dev/kfd", false, "render"}, {"/dev/dri/renderD128", true, "render"}});
  EXPECT_EQ(verdicts(all), "FAIL");
  EXPECT_THAT(words_of(all), HasSubstr("sudo usermod -aG render $USER"));
}

TEST(DeviceFilesCheck, MissesFiles) {
  EXPECT_THAT(words_of(with_files({})), HasSubstr("sudo nvidia-modprobe"));
  EXPECT_THAT(words_of(with_files({}, true)), HasSubstr("docker run --gpus all"));
  const Diagnoses all = with_files({{"/dev/nvidiactl", true, "root"}});
  EXPECT_EQ(verdicts(all), "FAIL");
  EXPECT_THAT(words_of(all), HasSubstr("/dev/nvidia-uvm is missing"));
}

}  // namespace
}  // namespace remuda::doctor
