// A job cannot open a device that it was not granted: `remuda run` on this machine, with GPUs simulated by the test
// library and device files made here. Their numbers are those of the driver, which need not be loaded: the kernel
// denies access before it searches for a driver. Skipped where no device files can be made, or access cannot be denied.
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "tests/nvml/library.h"

namespace remuda::tests::nvml {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr const char* kLook =
    "for i in 0 1 2; do if LC_ALL=C cat \"$OUT/nvidia$i\" 2>&1 >/dev/null | grep -q 'not permitted'; "
    "then echo closed; else echo open; fi; done";
constexpr const char* kAllOpen = "open\nopen\nopen\n";

/// Runs "$@" without the cgroup trees of version 2.
constexpr const char* kWithoutVersion2 =
    "for tree in $(awk '/ - cgroup2 / {print $5}' /proc/self/mountinfo); do umount \"$tree\" || exit 1; done; "
    "exec \"$@\"";
/// A cgroup of version 2 that the user nobody may manage, as systemd gives them to its users; "$0" is its name. The
/// keeper may be in it a little longer than `remuda run`.
constexpr const char* kDelegated =
    "tree=$(awk '/ - cgroup2 / {print $5; exit}' /proc/self/mountinfo); test -n \"$tree\" || exit 1; "
    "own=\"$tree$(sed -n 's/^0:://p' /proc/self/cgroup)/$0\"; mkdir \"$own\" || exit 1; "
    "chown 65534 \"$own\" \"$own/cgroup.procs\"; sh -c 'echo $$ >\"$0/cgroup.procs\"; exec \"$@\"' \"$own\" \"$@\"; "
    "status=$?; for i in $(seq 100); do rmdir \"$own\" && exit $status; sleep 0.1; done 2>/dev/null; exit 1";
const std::vector<std::string> kNobody{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class Isolation : public testing::Test {
 protected:
  void SetUp() override {
    if (std::filesystem::exists("/var/lib/remuda")) GTEST_SKIP() << "this machine has a pool that others use";
    for (unsigned minor = 0; minor < 3; ++minor) {
      const std::string path = folder_.path(fmt::format("nvidia{}", minor));
      if (::mknod(path.c_str(), S_IFCHR | 0666, ::makedev(195, minor)) != 0)
        GTEST_SKIP() << "this user may make no device files";
      ::chmod(path.c_str(), 0666);
    }
    if (tests::run({"/bin/sh", "-c", kLook}, environment()).out != kAllOpen)
      GTEST_SKIP() << "device files do not work in " << folder_.path("");
    folder_.write("machine.json", to_pretty(to_json(machine())));
    std::filesystem::create_directory(folder_.path("state"));
    for (const char* name : {"", "state"})
      std::filesystem::permissions(folder_.path(name), std::filesystem::perms::all);
  }

  static Inventory machine() {
    Inventory machine;
    machine.host = "test";
    for (int index = 0; index < 3; ++index) {
      Device gpu;
      gpu.index = index;
      gpu.id = fmt::format("GPU-00000000-0000-0000-0000-00000000000{}", index);
      gpu.uuid = gpu.id;
      gpu.kind = DeviceKind::gpu;
      gpu.vendor = "NVIDIA";
      gpu.model = "NVIDIA Test";
      gpu.minor = index;
      gpu.pci = fmt::format("00f{}:00:00.0", index);
      gpu.memory_bytes = int64_t{16} << 30;
      machine.devices.push_back(gpu);
    }
    return machine;
  }

  process::Environment environment() const {
    return {{"LD_LIBRARY_PATH", library_folder("current")},
            {env::test_nvml.name, folder_.path("machine.json")},
            {"XDG_STATE_HOME", folder_.path("state")},
            {"OUT", folder_.path("")},
            {env::claims.name, folder_.path("")}};
  }
  /// Runs `remuda run` for the second GPU, with the words `before` it and these flags.
  Finished run(const std::vector<std::string>& before, const std::vector<std::string>& flags,
               const std::string& script = kLook) const {
    const auto argv = joined(joined(before, {REMUDA_PROGRAM, "run", "--device", machine().devices[1].id}), flags);
    return tests::run(joined(argv, {"--", "/bin/sh", "-c", script}), environment());
  }
  /// The output of --dry-run.
  std::string promise(const std::vector<std::string>& before) const { return run(before, {"--dry-run"}).out; }

  void expect_enforced(const std::vector<std::string>& before) const {
    if (const std::string told = promise(before); told.find("cannot be opened") == std::string::npos)
      GTEST_SKIP() << told;
    const Finished finished = run(before, {"--isolate"});
    EXPECT_EQ(finished.out, "closed\nopen\nclosed\n") << finished;
    EXPECT_EQ(finished.err, "");
    EXPECT_EQ(run(before, {}).out, finished.out) << "without being asked to";
  }

  ScratchFolder folder_;
};

TEST_F(Isolation, KeepsAJobFromDevicesThatItWasNotGranted) { expect_enforced({}); }

TEST_F(Isolation, DoesSoInCgroupsOfVersionOne) {
  if (::getuid() != 0) GTEST_SKIP() << "only root has mounts of its own";
  expect_enforced({"unshare", "-m", "/bin/sh", "-c", kWithoutVersion2, "sh"});
}

TEST_F(Isolation, IsToldByPs) {
  const std::string ps = fmt::format("'{}' ps --json", REMUDA_PROGRAM);
  const Finished finished = run({}, {}, ps);
  const Json lease = parse_json(finished.out, "ps").value_or(Json{})["leases"][0];
  const bool promised = promise({}).find("cannot be opened") != std::string::npos;
  EXPECT_EQ(lease.value("devices_enforced", !promised), promised) << finished;
}

TEST_F(Isolation, LetsNoJobGiveAwayWhatItCannotSee) {
  if (promise({}).find("cannot be opened") == std::string::npos) GTEST_SKIP() << promise({});
  const Finished finished = run({}, {}, fmt::format("'{}' run -- echo started", REMUDA_PROGRAM));
  EXPECT_EQ(finished.exit.status, 125) << finished;
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("this is a part of job 1"));
}

TEST_F(Isolation, LetsAJobThatHasEverythingStartOthers) {
  if (std::filesystem::exists("/dev/dri") || std::filesystem::exists("/dev/nvidia0"))
    GTEST_SKIP() << "this machine has GPUs beside those";
  const std::string inner = fmt::format("'{}' run --cpu -- echo started", REMUDA_PROGRAM);
  const Finished finished = tests::run({REMUDA_PROGRAM, "run", "-n", "3", "--", "/bin/sh", "-c", inner}, environment());
  EXPECT_EQ(finished.out, "started\n") << finished;
}

TEST_F(Isolation, IsRefusedWhereNothingIsPermitted) {
  if (!tests::run(joined(kNobody, {REMUDA_PROGRAM, "--version"})).exit.ok())
    GTEST_SKIP() << "the user nobody cannot start remuda from where it is";
  EXPECT_THAT(promise(kNobody), HasSubstr("held by a process group; devices that were not granted are hidden by"));
  const Finished refused = run(kNobody, {"--isolate"});
  EXPECT_EQ(refused.exit.status, 125) << refused;
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("cannot be kept from devices that it is not granted: no "));
  EXPECT_THAT(refused.err, AnyOf(HasSubstr("no permission to"), HasSubstr("no cgroups here"))) << "as the host has it";
  const Finished finished = run(kNobody, {});
  EXPECT_EQ(finished.out, kAllOpen) << "unless asked, it goes on without: " << finished;
  EXPECT_EQ(finished.err, "");
}

TEST_F(Isolation, IsHalfThereInADelegatedCgroup) {
  if (!tests::run(joined(kNobody, {REMUDA_PROGRAM, "--version"})).exit.ok())
    GTEST_SKIP() << "the user nobody cannot start remuda from where it is";
  const auto before = joined({"/bin/sh", "-c", kDelegated, fmt::format("remuda-test-{}", ::getpid())}, kNobody);
  const std::string told = promise(before);
  if (told.empty()) GTEST_SKIP() << "no cgroups of version 2 here, or none may be made";
  EXPECT_THAT(told, HasSubstr("held by a cgroup; devices that were not granted are hidden by variables only: no "
                              "permission to load a device filter"));
  const Finished finished = run(before, {}, "grep -c /remuda-test-.*/remuda- /proc/self/cgroup");
  EXPECT_EQ(finished.out, "1\n") << finished;
  EXPECT_EQ(finished.exit.status, 0) << "the cgroup is gone: " << finished;
}

TEST_F(Isolation, NeedsTheMachineItself) {
  EXPECT_EQ(run({}, {"--isolate", "--machine", folder_.path("machine.json")}).exit.status, 2);
}

}  // namespace
}  // namespace remuda::tests::nvml
