// What works depends on the user and the machine; where something does not, its tests are skipped and say why.
#include "confine/confinement.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"
#include "confine/device_filter.h"
#include "process/spawn.h"

namespace remuda::confine {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// The kernel's list of devices keeps it free for experiments: no driver opens such a device.
constexpr unsigned kFreeMajor = 60;

class Confining : public testing::Test {
 protected:
  std::string node(unsigned minor) const {
    const std::string path = scratch_.path(std::to_string(minor));
    ::mknod(path.c_str(), S_IFCHR | 0666, ::makedev(kFreeMajor, minor));
    return path;
  }
  /// Whether opening the file reaches the kernel's search for the device's driver.
  static bool can_be_opened(const std::string& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return file || errno == ENXIO || errno == ENODEV;
  }
  /// How `script` ends in that cgroup.
  static int run(int cgroup, const std::string& script) {
    process::ProcessSpec process{.argv = {"/bin/sh", "-c", script}};
    process.cgroup = cgroup;
    const auto pid = spawn(process);
    EXPECT_TRUE(pid) << pid.error().sentence;
    int status = -1;
    if (pid) ::waitpid(*pid, &status, 0);
    return WEXITSTATUS(status);
  }
  static std::string blocked(const std::string& path) {
    return "LC_ALL=C cat '" + path + "' 2>&1 | grep -q 'Operation not permitted'";
  }

  ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
};

TEST_F(Confining, KeepsAJobFromDevices) {
  if (const Confined possible = try_confinement(); !possible.devices) GTEST_SKIP() << possible.obstacle;
  const std::string withheld = node(1), other = node(2);
  if (!can_be_opened(withheld)) GTEST_SKIP() << "no device files in " << folder_;
  const auto confinement = Confinement::make(folder_, 1, Withheld{{{kFreeMajor, 1}}, {}});
  EXPECT_TRUE(confinement.how().devices) << confinement.how().obstacle;
  EXPECT_EQ(run(confinement.cgroup(), blocked(withheld)), 0);
  EXPECT_EQ(run(confinement.cgroup(), "setsid env -i sh -c \"" + blocked(withheld) + "\""), 0);
  EXPECT_EQ(run(confinement.cgroup(), blocked(other)), 1);
  EXPECT_EQ(run(-1, blocked(withheld)), 1) << "only in the cgroup";
}

TEST_F(Confining, DoesSoInEachKindOfTree) {
  const std::string withheld = node(1), other = node(2);
  if (!can_be_opened(withheld)) GTEST_SKIP() << "no device files in " << folder_;
  int tried = 0;
  for (const CgroupPlace& place : own_cgroup_places()) {
    const auto cgroup = JobCgroup::make(place, cgroup_name(folder_, 2));
    if (!cgroup) continue;
    if (const auto denied = deny_devices(cgroup->fd(), place.version, {{kFreeMajor, 1}, {kFreeMajor, 3}}); !denied) {
      EXPECT_THAT(denied.error().message, Not(HasSubstr("verifier")));
      continue;
    }
    ++tried;
    EXPECT_EQ(run(cgroup->fd(), blocked(withheld)), 0) << place.version;
    EXPECT_EQ(run(cgroup->fd(), blocked(other)), 1) << place.version;
  }
  if (tried == 0) GTEST_SKIP() << "no cgroup here takes a device filter";
}

TEST_F(Confining, LeavesNothingBehind) {
  const auto name = cgroup_name(folder_, 3);
  {
    const auto confinement = Confinement::make(folder_, 3, std::nullopt);
  }
  EXPECT_THAT(find_cgroups(name), IsEmpty());
}

TEST_F(Confining, SaysWhatItDoesNotKnow) {
  const auto confinement = Confinement::make(folder_, 4, Withheld{{}, {"gpu:1"}});
  if (confinement.how().cgroup == 0) GTEST_SKIP() << confinement.how().obstacle;
  EXPECT_FALSE(confinement.how().devices);
  EXPECT_THAT(confinement.how().sentence(), HasSubstr("device files of gpu:1"));
}

TEST_F(Confining, IsNothingWhereThereIsNoPool) {
  const auto confinement = Confinement::make(folder_ + "/gone", 1, std::nullopt);
  EXPECT_EQ(confinement.how().cgroup, 0);
  EXPECT_EQ(confinement.cgroup(), -1);
  EXPECT_EQ(confinement.folder(), "");
  confinement.kill();
}

TEST(Confined, SaysWhatHolds) {
  EXPECT_EQ((Confined{.cgroup = 2, .devices = true, .obstacle = ""}).sentence(),
            "processes are held by a cgroup; devices that were not granted cannot be opened");
  EXPECT_EQ((Confined{.cgroup = 0, .devices = false, .obstacle = "no cgroups here"}).sentence(),
            "processes are held by a process group; devices that were not granted are hidden by variables only: no "
            "cgroups here");
}

}  // namespace
}  // namespace remuda::confine
