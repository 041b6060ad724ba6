// Uses real cgroups, of whatever version this machine gives its controllers to; where this user may make none, or no
// tree has a controller, the tests are skipped and say why.
#include "confine/host_limits.h"

#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"
#include "process/affinity.h"
#include "process/spawn.h"

namespace remuda::confine {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int64_t kMiB = 1 << 20;

class HostLimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const CgroupPlace& place : job_places())
      if (auto made = JobCgroup::make(place, name_); made && !cgroup_) cgroup_.emplace(std::move(*made));
    if (!cgroup_) GTEST_SKIP() << "this user may make no cgroup here";
  }
  void TearDown() override {
    cgroup_.reset();
    EXPECT_THAT(find_cgroups(name_), IsEmpty());
  }

  /// How `script` ends in them.
  process::ExitState run(const HostLimits& limits, const std::string& script) const {
    process::ProcessSpec process{.argv = {"/bin/sh", "-c", script}};
    process.cgroup = cgroup_->fd();
    for (const JobCgroup& one : limits.further) process.further_cgroups.push_back(one.fd());
    const auto pid = spawn(process);
    EXPECT_TRUE(pid) << pid.error().sentence;
    int status = -1;
    if (pid) ::waitpid(*pid, &status, 0);
    return {WEXITSTATUS(status), WIFSIGNALED(status) ? WTERMSIG(status) : 0};
  }
  MemoryUse use_in(const HostLimits& limits) const {
    std::vector<std::string> further;
    for (const JobCgroup& one : limits.further) further.push_back(one.folder());
    return memory_use(cgroup_->folder(), further);
  }

  const std::string name_ = fmt::format("remuda-limits-{}", ::getpid());
  std::optional<JobCgroup> cgroup_;
};

/// In one statement, so that the shell itself takes the memory.
std::string takes(int64_t bytes) {
  return fmt::format("x=$(head -c {} /dev/zero | tr '\\0' x); test ${{#x}} -gt 0", bytes);
}

TEST_F(HostLimitsTest, NoProcessRunsOnAnotherCore) {
  const int core = process::allowed_cores().back();
  const HostLimits limits = limit_host(*cgroup_, {.cores = {core}});
  if (limits.how.cores.empty()) GTEST_SKIP() << limits.how.obstacle;
  EXPECT_EQ(limits.how.obstacle, "");
  if (limits.how.cores != "cpuset") GTEST_SKIP() << "they share the time of all cores here";
  const std::string asks = fmt::format("test \"$(taskset -cp $$ | sed 's/.*: //')\" = {}", core);
  EXPECT_EQ(run(limits, asks).status, 0);
  EXPECT_EQ(run(limits, fmt::format("taskset -cp 0-999 $$ >/dev/null; {}", asks)).status, 0) << "nor if it tries";
  EXPECT_EQ(run(limits, fmt::format("setsid env -i PATH=\"$PATH\" sh -c 'test $(nproc) = 1'")).status, 0);
}

TEST_F(HostLimitsTest, MoreMemoryThanItHasEndsAProcess) {
  const HostLimits limits = limit_host(*cgroup_, {.cores = {}, .memory_bytes = 64 * kMiB});
  if (!limits.how.memory) GTEST_SKIP() << limits.how.obstacle;
  EXPECT_EQ(run(limits, takes(8 * kMiB)).status, 0);
  const MemoryUse before = use_in(limits);
  EXPECT_EQ(before.kills, 0);
  EXPECT_FALSE(run(limits, "exec 2>/dev/null; " + takes(256 * kMiB)).ok());
  const MemoryUse after = use_in(limits);
  EXPECT_GE(after.kills, 1);
  ASSERT_TRUE(after.peak_bytes.has_value()) << after.peak_bytes.missing().detail;
  EXPECT_GT(after.peak_bytes.value(), 32 * kMiB);
  EXPECT_LE(after.peak_bytes.value(), 64 * kMiB);
  EXPECT_GT(after.peak_bytes.value(), before.peak_bytes.value());
}

TEST_F(HostLimitsTest, MemoryIsCountedWithoutALimit) {
  const HostLimits limits = limit_host(*cgroup_, {});
  EXPECT_EQ(limits.how, HostLimited{});
  const MemoryUse none = use_in(limits);
  if (!none.peak_bytes.has_value()) GTEST_SKIP() << none.peak_bytes.missing().detail;
  EXPECT_EQ(run(limits, takes(16 * kMiB)).status, 0);
  EXPECT_GT(use_in(limits).peak_bytes.value(), 16 * kMiB);
}

TEST_F(HostLimitsTest, ACoreThatIsNotThereIsAnObstacle) {
  const HostLimits limits = limit_host(*cgroup_, {.cores = {60000}});
  if (limits.how.cores == "cpuset") GTEST_SKIP() << "version 2 takes what will be there";
  EXPECT_TRUE(limits.how.cores == "quota" || !limits.how.obstacle.empty());
}

TEST(MemoryUse, SaysWhyItIsMissing) {
  EXPECT_EQ(memory_use("", {}).peak_bytes.missing().detail, "no cgroup holds the job");
  const ScratchFolder folder;
  EXPECT_EQ(memory_use(folder.path(), {}).peak_bytes.missing().detail, "the job's cgroup does not count memory");
  folder.write("memory.current", "5\n");
  EXPECT_THAT(memory_use(folder.path(), {}).peak_bytes.missing().detail, HasSubstr("older than Linux 5.19"));
  folder.write("memory.peak", "4096\n");
  folder.write("memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n");
  const MemoryUse use = memory_use(folder.path(), {});
  EXPECT_EQ(use.peak_bytes.value(), 4096);
  EXPECT_EQ(use.kills, 2);
}

TEST(MemoryUse, SaysWhomTheKernelHasEnded) {
  EXPECT_EQ(kills_text({}, 64 * kMiB), "");
  EXPECT_EQ(kills_text({.peak_bytes = {}, .kills = 1}, 64 * kMiB),
            "the kernel has ended a process of it, as more was wanted than its 64 MiB of the host");
  EXPECT_EQ(kills_text({.peak_bytes = {}, .kills = 2}, 0),
            "the kernel has ended 2 of its processes, as the host had no more memory");
}

TEST(JobPlaces, AreThoseOfThisProcessOrBesideAllOthers) {
  const auto own = own_cgroup_places(), places = job_places();
  ASSERT_EQ(places.size(), own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(places[i].version, own[i].version);
    EXPECT_THAT(places[i].own, testing::AnyOf(own[i].own, own[i].mount + "/remuda"));
  }
}

}  // namespace
}  // namespace remuda::confine
