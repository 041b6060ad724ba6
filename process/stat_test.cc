#include "process/stat.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace remuda::process {
namespace {

TEST(ProcessStat, TellsOfThisProcess) {
  const auto stat = process_stat(::getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_GE(stat->threads, 1);
  EXPECT_GT(stat->start_ticks, 0);
}

TEST(ProcessStat, CountsTheTimeOnProcessors) {
  const int64_t before = process_stat(::getpid())->cpu_ticks;
  while (process_stat(::getpid())->cpu_ticks < before + 2) {
  }
  EXPECT_GE(process_stat(::getpid())->cpu_ticks * 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)), 0.02);
}

TEST(ProcessStat, IsNotMisledByAName) {
  char before[16] = {};
  ::prctl(PR_GET_NAME, before);
  ::prctl(PR_SET_NAME, "a) Z 1 (b) Z 1");
  const auto stat = process_stat(::getpid());
  ::prctl(PR_SET_NAME, before);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) Z 1 (b) Z 1");
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, ::getppid());
}

TEST(ProcessStat, TellsWhoWasForkedAndWhoIsAZombie) {
  constexpr unsigned kForkedNoExec = 0x40;  // PF_FORKNOEXEC
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto stat = process_stat(child);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'Z');
  EXPECT_EQ(stat->parent, ::getpid());
  EXPECT_NE(stat->flags & kForkedNoExec, 0U);
  EXPECT_FALSE(process_stat(child)) << "it is gone";
}

TEST(ProcessStat, IsNothingForWhatIsNoProcess) {
  for (const int pid : {0, -1, -100, 1 << 30}) EXPECT_FALSE(process_stat(pid)) << pid;
}

}  // namespace
}  // namespace remuda::process
