#include "process/process_id.h"

#include <chrono>
#include <csignal>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/file.h"
#include "process/testing/in_child.h"

namespace remuda::process {
namespace {

/// A child that waits to be killed, with this name.
pid_t sleeper(const char* name = "sleeper") {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, name);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)!::write(ends[1], "!", 1);
    for (;;) ::pause();
  }
  char ready = 0;
  EXPECT_EQ(::read(ends[0], &ready, 1), 1);
  ::close(ends[0]);
  ::close(ends[1]);
  return child;
}

void kill_and_reap(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(ProcessId, KnowsItself) {
  const ProcessId self = own_process_id();
  EXPECT_EQ(self.pid, ::getpid());
  EXPECT_GT(self.start_ticks, 0);
  EXPECT_EQ(self.boot_id.size(), 36U);
  EXPECT_EQ(process_id(::getpid()), self);
  EXPECT_TRUE(is_alive(self));
}

TEST(ProcessId, KnowsNobodyBySillyNumbers) {
  EXPECT_EQ(process_id(0), std::nullopt);
  EXPECT_EQ(process_id(-1), std::nullopt);
  EXPECT_FALSE(is_alive({}));
  ProcessId group = own_process_id();
  group.pid = -group.pid;
  EXPECT_FALSE(is_alive(group));
}

TEST(ProcessId, SeesTheEndOfAProcess) {
  const pid_t child = sleeper();
  const auto id = process_id(child);
  ASSERT_TRUE(id);
  EXPECT_TRUE(is_alive(*id));
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(is_alive(*id)) << "a zombie";
  EXPECT_EQ(process_id(child), std::nullopt);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(is_alive(*id));
}

TEST(ProcessId, IsNotFooledByANumberUsedAgain) {
  ProcessId earlier = own_process_id();
  earlier.start_ticks -= 1;
  EXPECT_FALSE(is_alive(earlier));
  ProcessId before_reboot = own_process_id();
  before_reboot.boot_id = "00000000-0000-0000-0000-000000000000";
  EXPECT_FALSE(is_alive(before_reboot));
}

TEST(ProcessId, IsNotFooledByANameThatLooksLikeFields) {
  const pid_t child = sleeper("x) Z 1 1 1 (");
  const auto id = process_id(child);
  ASSERT_TRUE(id);
  EXPECT_GE(id->start_ticks, own_process_id().start_ticks);
  EXPECT_TRUE(is_alive(*id));
  kill_and_reap(child);
}

bool first_thread_has_ended(pid_t process) {
  for (int i = 0; i < 1000; ++i) {
    const auto stat = read_text("/proc/" + std::to_string(process) + "/stat");
    if (stat && stat->find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(ProcessId, LivesOnWhenOnlyItsFirstThreadHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);
  }
  EXPECT_TRUE(first_thread_has_ended(child));
  const auto id = process_id(child);
  EXPECT_TRUE(id && is_alive(*id));
  kill_and_reap(child);
}

TEST(ProcessId, TakesAProcessThatProcHidesForAlive) {
  constexpr uid_t kSomebody = 12345;
  const ProcessId other = own_process_id();
  const auto child = with_own_mounts([&]() -> std::string {
    if (::mount("proc", "/proc", "proc", 0, "hidepid=2") != 0) return "skip: /proc cannot be mounted";
    if (::setgroups(0, nullptr) != 0 || ::setgid(kSomebody) != 0 || ::setuid(kSomebody) != 0)
      return "skip: the user cannot be changed";
    if (process_id(other.pid)) return "skip: hidepid hides nothing here";
    ProcessId gone = other;
    gone.pid = 1 << 21;
    return std::string(is_alive(other) ? "alive" : "dead") + (is_alive(gone) ? ", alive" : ", dead");
  });
  if (child.said.starts_with("skip")) GTEST_SKIP() << child.said;
  EXPECT_EQ(child.said, "alive, dead");
}

}  // namespace
}  // namespace remuda::process
