#include "probe/nvml/watched.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/manual_clock.h"
#include "base/testing/scratch_folder.h"
#include "probe/nvml/testing/fake_lib.h"

namespace remuda::probe::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void hang() {
  for (;;) ::pause();
}
void crash() { ::raise(SIGSEGV); }

/// A number in memory that the probe's process shares.
std::atomic<int>* shared_number() {
  void* page = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (page) std::atomic<int>(0);
}

std::vector<std::string> ids(const Finding& finding) {
  std::vector<std::string> ids;
  for (const Device& device : finding.devices) ids.push_back(device.id);
  return ids;
}

class WatchedProbe : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::machine() = {.gpus = {fake::gpu(1), fake::gpu(2), fake::gpu(3)}};
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j) gpu(i).paths[j] = 50, gpu(i).peer_read[j] = 0, gpu(i).peer_write[j] = 0;
  }
  static fake::Gpu& gpu(size_t i) { return fake::machine().gpus[i]; }

  /// With the default step_s nothing counts as hanging, however slow the machine.
  std::unique_ptr<Watched> probe(double step_s = 20) {
    NvmlOptions options{.proc = "/nowhere/proc", .sys = "/nowhere/sys", .step_s = step_s, .start_s = step_s};
    return std::make_unique<Watched>(options, [] { return Result<Lib>(fake::new_driver()); }, clock_);
  }

  ManualClock clock_;
};

constexpr double kShortStep = 0.25;  // steps that do not hang must be faster, also on a busy machine

TEST_F(WatchedProbe, FindsDevicesLinksAndDriver) {
  auto nvml = probe();
  EXPECT_EQ(nvml->unviable(), std::nullopt);
  const Finding finding = nvml->find().value();
  EXPECT_THAT(ids(finding), ElementsAre("GPU-aaaa-01", "GPU-aaaa-02", "GPU-aaaa-03"));
  EXPECT_EQ(finding.devices[2].index, 2);
  EXPECT_EQ(finding.links.size(), 3);
  EXPECT_EQ(finding.links[1].b, "GPU-aaaa-03");
  EXPECT_EQ(finding.links[1].path.value(), Path::sys);
  ASSERT_EQ(finding.drivers.size(), 1);
  EXPECT_EQ(finding.drivers[0].version.value(), "550.54.15");
  EXPECT_EQ(finding.drivers[0].library_version.value(), "12.550.54.15");
  EXPECT_EQ(finding.drivers[0].runtime_version.value(), "12.4");
  EXPECT_EQ(finding.reason, "");
}

TEST_F(WatchedProbe, KeepsItsProcessFromOneReadingToTheNext) {
  auto nvml = probe();
  EXPECT_EQ(nvml->find().value().devices[0].status.xid.value(), 0);
  gpu(0).answers = kGpuIsLost;  // here, not in the process that was forked before
  EXPECT_TRUE(nvml->find().value().devices[0].uuid.has_value());
}

TEST_F(WatchedProbe, StartsAgainWhenSomebodyEndedItsProcess) {
  std::atomic<int>& pid = *shared_number();
  Watched nvml({.proc = "/nowhere", .sys = "/nowhere", .step_s = 20, .start_s = 20},
               [&pid] { return pid = ::getpid(), Result<Lib>(fake::new_driver()); });
  EXPECT_TRUE(nvml.find().value().devices[0].uuid.has_value());
  const int first = pid;
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(first), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(nvml.find().value().devices[0].uuid.has_value());
  EXPECT_NE(pid, first);
}

TEST_F(WatchedProbe, SaysWhyThereIsNoLibrary) {
  Watched nvml({.step_s = 20, .start_s = 20}, [] { return load_lib("libno-such-thing.so.1"); });
  EXPECT_EQ(nvml.unviable(), "libno-such-thing.so.1 is not installed: no NVIDIA driver here");
  EXPECT_FALSE(nvml.is_blind());
  const Finding finding = nvml.find().value();
  EXPECT_THAT(finding.devices, IsEmpty());
  EXPECT_EQ(finding.reason, "libno-such-thing.so.1 is not installed: no NVIDIA driver here");
  EXPECT_FALSE(finding.blind);
}

TEST_F(WatchedProbe, SaysWhyTheLibraryDoesNotStart) {
  fake::machine().init = kVersionMismatch;
  const auto mismatched = probe();
  EXPECT_THAT(mismatched->unviable().value_or(""), HasSubstr("different versions (error 18)"));
  EXPECT_TRUE(mismatched->is_blind());
  EXPECT_TRUE(mismatched->find().value().blind);
  fake::machine().init = kDriverNotLoaded;
  EXPECT_EQ(probe()->unviable(), "NVML: the driver's kernel module is not loaded");
}

TEST_F(WatchedProbe, ALibraryThatHangsAtItsStartIsNotViable) {
  Watched nvml({.step_s = kShortStep, .start_s = kShortStep}, []() -> Result<Lib> { return hang(), Lib{}; });
  EXPECT_EQ(nvml.unviable(), "NVML did not answer within 0.25 s");
  EXPECT_TRUE(nvml.is_blind());
}

TEST_F(WatchedProbe, ALibraryThatCrashesAtItsStartIsNotViable) {
  Watched nvml({.step_s = 20, .start_s = 20}, []() -> Result<Lib> { return crash(), Lib{}; });
  EXPECT_EQ(nvml.unviable(),
            "NVML made the driver's library fail: its process crashed (signal 11, Segmentation fault)");
}

TEST_F(WatchedProbe, AGpuThatHangsIsLostAndHidesNoOther) {
  gpu(1).on_question = hang;
  auto nvml = probe(kShortStep);
  const Finding finding = nvml->find().value();
  EXPECT_THAT(ids(finding), ElementsAre("GPU-aaaa-01", "gpu:1", "GPU-aaaa-03"));
  const Missing& missing = finding.devices[1].memory_bytes.missing();
  EXPECT_EQ(missing.reason, MissingReason::lost);
  EXPECT_EQ(missing.detail, "GPU 1 did not answer within 0.25 s");
  EXPECT_EQ(finding.devices[1].status.busy.missing(), missing);
  EXPECT_EQ(finding.reason, missing.detail);
  EXPECT_TRUE(finding.devices[2].memory_bytes.has_value());
  ASSERT_EQ(finding.links.size(), 3);
  EXPECT_FALSE(finding.links[0].path.has_value());
  EXPECT_EQ(finding.links[1].path.value(), Path::sys);
  nvml.reset();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no process is left behind
}

TEST_F(WatchedProbe, AGpuThatHangsWhenOpenedIsLost) {
  gpu(0).on_open = hang;
  const Finding finding = probe(kShortStep)->find().value();
  EXPECT_THAT(ids(finding), ElementsAre("gpu:0", "GPU-aaaa-02", "GPU-aaaa-03"));
}

TEST_F(WatchedProbe, AGpuThatCrashesTheLibraryIsLost) {
  gpu(0).on_question = crash;
  gpu(2).on_question = [] { ::_exit(7); };
  const Finding finding = probe()->find().value();
  EXPECT_THAT(ids(finding), ElementsAre("gpu:0", "GPU-aaaa-02", "gpu:2"));
  EXPECT_EQ(finding.devices[0].uuid.missing().detail,
            "GPU 0 made the driver's library fail: its process crashed (signal 11, Segmentation fault)");
  EXPECT_THAT(finding.devices[2].uuid.missing().detail, HasSubstr("ended with status 7"));
  EXPECT_THAT(finding.reason, HasSubstr("; 1 more cannot be read"));
}

TEST_F(WatchedProbe, AGpuThatHungIsLeftAloneForAWhile) {
  gpu(1).on_question = hang;
  auto nvml = probe(kShortStep);
  EXPECT_FALSE(nvml->find().value().devices[1].uuid.has_value());
  gpu(1).on_question = nullptr;
  EXPECT_FALSE(nvml->find().value().devices[1].uuid.has_value());
  clock_.sleep_s(301);
  EXPECT_TRUE(nvml->find().value().devices[1].uuid.has_value());
}

TEST_F(WatchedProbe, AForbiddenOrLostGpuIsThereWithTheReason) {
  gpu(0).open = kNoPermission;
  gpu(1).answers = kGpuIsLost;
  const Finding finding = probe()->find().value();
  EXPECT_THAT(ids(finding), ElementsAre("gpu:0", "gpu:1", "GPU-aaaa-03"));
  EXPECT_EQ(finding.devices[0].uuid.missing().reason, MissingReason::denied);
  EXPECT_EQ(finding.devices[0].uuid.missing().detail, "GPU 0: this user may not read it");
  EXPECT_EQ(finding.devices[1].status.power_watts.missing().reason, MissingReason::lost);
  EXPECT_EQ(finding.reason, "GPU 0: this user may not read it; 1 more cannot be read");
}

TEST_F(WatchedProbe, AGpuThatIsLostKeepsTheNameItHad) {
  static std::atomic<int>& hangs = *shared_number();
  gpu(1).on_question = [] {
    if (hangs) hang();
  };
  auto nvml = probe(kShortStep);
  EXPECT_TRUE(nvml->find().value().devices[1].uuid.has_value());
  hangs = 1;
  const Finding finding = nvml->find().value();
  EXPECT_THAT(ids(finding), ElementsAre("GPU-aaaa-01", "GPU-aaaa-02", "GPU-aaaa-03"));
  EXPECT_EQ(finding.devices[1].pci.value(), "0000:02:00.0");
  EXPECT_EQ(finding.devices[1].memory_bytes.missing().reason, MissingReason::lost);
  EXPECT_EQ(finding.links[0].b, "GPU-aaaa-02");
}

TEST_F(WatchedProbe, UnreadGpusHaveTheAddressesThatNobodyElseHas) {
  const ScratchFolder root;
  for (const char* name : {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"})
    root.make_folder(std::string("driver/nvidia/gpus/") + name);
  gpu(1).open = kGpuIsLost;
  Watched nvml({.proc = root.path(), .sys = root.path(), .step_s = 20, .start_s = 20},
               [] { return Result<Lib>(fake::new_driver()); });
  EXPECT_THAT(ids(nvml.find().value()), ElementsAre("GPU-aaaa-01", "0000:02:00.0", "GPU-aaaa-03"));
}

TEST_F(WatchedProbe, TwoGpusWithOneUuidAreTwoDevices) {
  gpu(1).uuid = gpu(0).uuid;
  gpu(2).uuid = gpu(0).uuid;
  gpu(2).pci = gpu(1).pci;
  EXPECT_THAT(ids(probe()->find().value()), ElementsAre("GPU-aaaa-01", "0000:02:00.0", "gpu:2"));
}

TEST_F(WatchedProbe, PartitionsComeAfterGpusAndKnowTheirOwn) {
  gpu(1).mig = true;
  gpu(1).partitions = {{.uuid = "MIG-1", .memory_mib = 4864, .instance = 1, .slices = 1}};
  const Finding finding = probe()->find().value();
  EXPECT_THAT(ids(finding), ElementsAre("GPU-aaaa-01", "GPU-aaaa-02", "GPU-aaaa-03", "MIG-1"));
  EXPECT_EQ(finding.devices[3].parent, "GPU-aaaa-02");
  EXPECT_EQ(finding.links.size(), 3);
}

TEST_F(WatchedProbe, ProcessesAreDescribed) {
  gpu(0).compute = {{.pid = static_cast<unsigned>(::getpid()), .used_memory = 1 << 20, .gpu_instance = kWholeGpu},
                    {.pid = 4'000'000, .used_memory = 1 << 20, .gpu_instance = kWholeGpu}};
  NvmlOptions options{.sys = "/nowhere", .step_s = 20, .start_s = 20};
  Watched nvml(options, [] { return Result<Lib>(fake::new_driver()); });
  const auto processes = nvml.find().value().devices[0].status.processes.value();
  ASSERT_EQ(processes.size(), 2);
  EXPECT_THAT(processes[0].command.value(), HasSubstr("nvml_test"));
  EXPECT_TRUE(processes[0].user.has_value());
  EXPECT_EQ(processes[1].command.missing().reason, MissingReason::lost);
}

TEST_F(WatchedProbe, ProcessesAreThoseOfNow) {
  static std::atomic<int>& readings = *shared_number();
  const auto has = [](unsigned pid) {
    return ProcessInfo{.pid = pid, .used_memory = static_cast<uint64_t>(readings) << 20, .gpu_instance = kWholeGpu};
  };
  gpu(0).compute = {has(100), has(200)};
  gpu(1).on_question = [] {
    auto& all = gpu(0).compute;
    if (readings == 1)
      all = {all[0], {.pid = 200, .used_memory = 7, .gpu_instance = kWholeGpu}, all[0]}, all[2].pid = 300;
    if (readings == 2) all = {all[2]};
  };
  auto nvml = probe();
  const auto seen = [&] {
    std::vector<std::pair<int, int64_t>> all;
    const Finding finding = nvml->find().value();
    for (const Process& one : finding.devices[0].status.processes.value())
      all.emplace_back(one.pid, one.memory_bytes.value());
    return all;
  };
  using Seen = std::pair<int, int64_t>;
  EXPECT_THAT(seen(), ElementsAre(Seen(100, 0), Seen(200, 0)));
  EXPECT_THAT(seen(), ElementsAre(Seen(100, 0), Seen(200, 0)));
  readings = 1;
  (void)seen();
  EXPECT_THAT(seen(), ElementsAre(Seen(100, 0), Seen(200, 7), Seen(300, 0)));
  readings = 2;
  (void)seen();
  EXPECT_THAT(seen(), ElementsAre(Seen(300, 0)));
}

TEST_F(WatchedProbe, ProcessesAreThereWithANewChildToo) {
  static std::atomic<int>& pid = *shared_number();
  gpu(0).compute = {{.pid = 100, .used_memory = 1, .gpu_instance = kWholeGpu}};
  gpu(0).on_question = [] { pid = ::getpid(); };
  auto nvml = probe();
  EXPECT_EQ(nvml->find().value().devices[0].status.processes.value().size(), 1);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  const Finding again = nvml->find().value();
  EXPECT_EQ(again.devices[0].status.processes.value().size(), 1);
  EXPECT_EQ(again.reason, "");
}

TEST_F(WatchedProbe, NoGpusIsAReason) {
  fake::machine().gpus.clear();
  const Finding finding = probe()->find().value();
  EXPECT_THAT(finding.devices, IsEmpty());
  EXPECT_EQ(finding.reason, "the driver is there and finds no GPU");
}

TEST(NvmlProbe, RefusesAWrongTimeout) {
  ASSERT_EQ(::setenv("REMUDA_PROBE_TIMEOUT", "soon", 1), 0);
  const auto nvml = make_nvml_probe();
  ::unsetenv("REMUDA_PROBE_TIMEOUT");
  EXPECT_EQ(nvml->unviable(), std::nullopt);
  const auto finding = nvml->find();
  ASSERT_FALSE(finding);
  EXPECT_EQ(finding.error().kind, ErrorKind::usage);
  EXPECT_THAT(finding.error().message, HasSubstr("REMUDA_PROBE_TIMEOUT is 'soon'"));
}

}  // namespace
}  // namespace remuda::probe::nvml
