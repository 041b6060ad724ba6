#include "agent/openers.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"
#include "confine/open_nodes.h"

namespace remuda::agent {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

/// A device whose node is that of /dev/full, and a process of a user that has it open.
class OpenersTest : public testing::Test {
 protected:
  static constexpr int kUser = 61001;
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root acts as another user";
    box_.devices.resize(2);
    for (int i : {0, 1}) {
      box_.devices[i].id = "gpu:" + std::to_string(i);
      box_.devices[i].kind = DeviceKind::gpu;
      box_.devices[i].pci = "0000:0" + std::to_string(i) + ":00.0";
      sysfs_.write("bus/pci/devices/" + box_.devices[i].pci.value() + "/drm/card0/dev", i == 0 ? "1:7\n" : "250:7\n");
    }
  }
  /// One that has the device open; it is ended with this object.
  class Opener {
   public:
    explicit Opener(int uid) {
      int ready[2];
      if (::pipe2(ready, O_CLOEXEC) != 0) return;
      child_ = ::fork();
      if (child_ == 0) {
        const int opened = ::open("/dev/full", O_RDONLY | O_CLOEXEC);
        const bool is_user = uid == 0 || ::setresuid(uid, uid, uid) == 0;
        (void)!::write(ready[1], opened >= 0 && is_user ? "+" : "-", 1);
        for (;;) ::pause();
      }
      char word = '-';
      (void)!::read(ready[0], &word, 1);
      EXPECT_EQ(word, '+');
      ::close(ready[0]);
      ::close(ready[1]);
    }
    Opener(const Opener&) = delete;
    ~Opener() {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    int pid() const { return child_; }

   private:
    pid_t child_ = -1;
  };
  std::vector<Process> openers(const std::vector<std::string>& exempt = {}) {
    add_openers(box_, exempt, sysfs_.path());
    EXPECT_FALSE(box_.devices[1].status.processes.has_value());
    return box_.devices[0].status.processes.value_or({});
  }

  const ScratchFolder sysfs_;
  Inventory box_;
};

TEST_F(OpenersTest, AreProcessesOfTheDevice) {
  EXPECT_THAT(openers(), IsEmpty());
  const Opener one(kUser);
  const auto found = openers();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].pid, one.pid());
  EXPECT_EQ(found[0].user.value_or(""), std::to_string(kUser));
  EXPECT_EQ(found[0].command.value_or(""), "agent_test");
  EXPECT_THAT(openers(), SizeIs(1)) << "it is listed already";
}

TEST_F(OpenersTest, OfRootAreNone) {
  const Opener one(0);
  EXPECT_THAT(openers(), IsEmpty());
}

TEST_F(OpenersTest, OfExemptUnitsAreNone) {
  const Opener one(kUser);
  ScratchFolder proc;
  const std::string pid = std::to_string(one.pid());
  proc.make_folder(pid);
  proc.write(pid + "/status", "Name:\tsh\nUid:\t61001\t61001\t61001\t61001\n");
  proc.write(pid + "/cgroup", "0::/system.slice/a.service\n");
  std::filesystem::create_symlink("/proc/" + pid + "/fd", proc.path(pid + "/fd"));
  add_openers(box_, {"a.service"}, sysfs_.path(), proc.path());
  EXPECT_THAT(box_.devices[0].status.processes.value_or({}), IsEmpty());
  add_openers(box_, {"b.service"}, sysfs_.path(), proc.path());
  EXPECT_THAT(box_.devices[0].status.processes.value_or({}), SizeIs(1));
}

/// Processes as /proc shows them, whose descriptors are links in folders.
class FakeProcesses {
 public:
  void add(int pid, int uid, int slots, const std::string& target, int descriptors = 1) {
    const std::string folder = std::to_string(pid);
    proc_.make_folder(folder + "/fd");
    proc_.write(folder + "/status", fmt::format("Name:\tsh\nUid:\t{0}\t{0}\t{0}\t{0}\nFDSize:\t{1}\n", uid, slots));
    for (int i = 0; i < descriptors; ++i)
      std::filesystem::create_symlink(target, proc_.path(fmt::format("{}/fd/{}", folder, i)));
  }
  /// Descriptors that several have.
  void add_like(int pid, int uid, int slots, int other) {
    const std::string folder = std::to_string(pid);
    proc_.make_folder(folder);
    proc_.write(folder + "/status", fmt::format("Name:\tsh\nUid:\t{0}\t{0}\t{0}\t{0}\nFDSize:\t{1}\n", uid, slots));
    std::filesystem::create_symlink(proc_.path(std::to_string(other) + "/fd"), proc_.path(folder + "/fd"));
  }
  std::string path() const { return proc_.path(); }

 private:
  const ScratchFolder proc_;
};

TEST_F(OpenersTest, BeyondWhatIsLookedAtOfAUserHideNoneOfOthers) {
  constexpr int kOther = kUser + 1;
  FakeProcesses proc;
  proc.add(1, kUser, 1024, "/dev/null", static_cast<int>(confine::kMostLooks));
  proc.add(2, kUser, 256, "/dev/full");
  proc.add(3, kUser, 4096, "/dev/full");
  proc.add(4, kOther, 8192, "/dev/full");
  add_openers(box_, {}, sysfs_.path(), proc.path());
  std::vector<int> found;
  for (const Process& one : box_.devices[0].status.processes.value_or({})) found.push_back(one.pid);
  EXPECT_THAT(found, testing::ElementsAre(2, 4)) << "3 is not looked at any more";
}

/// Whose containers have processes of many user ids, which would use up what is looked at of all users.
TEST_F(OpenersTest, OfOneWithManyUserIdsHideNoneOfOthers) {
  constexpr int kIds = 12, kFirst = 100'000, kOther = kUser + 1;
  FakeProcesses proc;
  proc.add(1, kFirst, 64, "/dev/null", static_cast<int>(confine::kMostLooks));
  for (int i = 1; i < kIds; ++i) proc.add_like(1 + i, kFirst + i, 64, 1);
  proc.add(99, kOther, 8192, "/dev/full");
  const ScratchFolder folder;
  folder.write("subuid", "eve:100000:65536\n");
  add_openers(box_, {}, sysfs_.path(), proc.path(), Bearers(folder.path("subuid")));
  const std::vector<Process> found = box_.devices[0].status.processes.value_or({});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].pid, 99);
}

}  // namespace
}  // namespace remuda::agent
