#include "probe/known_processes.h"

#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <gmock/gmock.h>
#include <linux/sched.h>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/manual_clock.h"
#include "base/testing/scratch_folder.h"
#include "probe/process.h"

namespace remuda::probe {
namespace {

std::string stat_of(int ticks) {
  return "7 (x) R 1 1 1 0 -1 4 1 0 0 0 0 0 0 0 20 0 1 0 " + std::to_string(ticks) + " 1";
}

class KnownProcessesTest : public ::testing::Test {
 protected:
  void begin(const std::string& command, int ticks) {
    proc_.write("7/cmdline", command);
    proc_.write("7/stat", stat_of(ticks));
  }
  std::string command() { return known_.describe(7).command.value_or("unknown"); }

  ScratchFolder proc_;
  ManualClock clock_;
  KnownProcesses known_{proc_.path(), clock_};
};

TEST_F(KnownProcessesTest, AreReadOnceInHalfAMinute) {
  begin("sh", 100);
  EXPECT_EQ(command(), "sh");
  begin("python", 100);  // it has executed that
  clock_.sleep_s(29);
  EXPECT_EQ(command(), "sh");
  clock_.sleep_s(2);
  EXPECT_EQ(command(), "python");
}

TEST_F(KnownProcessesTest, AreOfOneOwnerAndStartWhileTheirFolderIsTheSame) {
  proc_.write("7/status", "Uid:\t0\t0\t0\t0\n");
  begin("sh", 100);
  const double began_s = known_.describe(7).start_time_s.value();
  clock_.sleep_s(31);
  begin("python", 500);
  EXPECT_EQ(command(), "python");
  EXPECT_EQ(known_.describe(7).start_time_s.value(), began_s) << "it is not looked for";
}

TEST_F(KnownProcessesTest, WhoseOwnerHasNoNameYetGetItLater) {
  proc_.write("7/status", "Uid:\t4111222333\t0\t0\t0\n");
  begin("sh", 100);
  EXPECT_NE(known_.describe(7).user.value_or("root"), "root");
  clock_.sleep_s(31);
  proc_.write("7/status", "Uid:\t0\t0\t0\t0\n");  // as if the directory had an answer
  EXPECT_EQ(known_.describe(7).user.value_or("unknown"), "root");
}

TEST_F(KnownProcessesTest, APidThatIsUsedAgainIsAnotherProcess) {
  begin("train", 100);
  const double began_s = known_.describe(7).start_time_s.value();
  std::filesystem::rename(proc_.path("7"), proc_.path("gone"));  // so that its inode is not the next one's
  begin("serve", 500);
  clock_.sleep_s(9);
  EXPECT_EQ(command(), "train") << "nobody has looked";
  clock_.sleep_s(2);
  EXPECT_EQ(command(), "serve");
  EXPECT_GT(known_.describe(7).start_time_s.value(), began_s);
}

TEST_F(KnownProcessesTest, ThatHaveEndedAreLostWithinTenSecondsAndOthersAreSeenAtOnce) {
  begin("train", 100);
  EXPECT_EQ(command(), "train");
  proc_.remove("7");
  clock_.sleep_s(11);
  EXPECT_EQ(known_.describe(7).command.missing().reason, MissingReason::lost);
  begin("serve", 500);
  EXPECT_EQ(command(), "serve");
}

TEST_F(KnownProcessesTest, ThatADriverHasLeftOutOnceAreForgotten) {
  begin("sh", 100);
  EXPECT_EQ(command(), "sh");
  known_.forget_others();
  begin("python", 100);
  EXPECT_EQ(command(), "sh");
  known_.forget_others();
  known_.forget_others();
  EXPECT_EQ(command(), "python");
}

/// A process of that pid, or of any, 0; -1 where this user may not choose one. It is called `name`, and sleeps.
int start(int pid, const char* name) {
  std::array<pid_t, 1> wanted{pid};
  clone_args args{};
  args.exit_signal = SIGCHLD;
  if (pid > 0) args.set_tid = reinterpret_cast<uint64_t>(wanted.data()), args.set_tid_size = 1;
  const auto child = static_cast<int>(::syscall(SYS_clone3, &args, sizeof args));
  if (child != 0) return child;
  ::execlp("sleep", name, "1000", nullptr);
  ::_exit(1);
}

void end(int pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

/// Waits until it executes the program.
std::string command_of(int pid, const std::string& expected) {
  std::string command;
  for (int i = 0; i < 5000 && command != expected; ++i) {
    command = describe_process(pid).command.value_or("");
    ::usleep(1000);
  }
  return command;
}

TEST(LiveKnownProcesses, APidThatIsUsedAgainIsAnotherProcess) {
  ManualClock clock;
  KnownProcesses known("/proc", clock);
  const int pid = start(0, "first");
  ASSERT_GT(pid, 0);
  EXPECT_EQ(command_of(pid, "first 1000"), "first 1000");
  EXPECT_EQ(known.describe(pid).command.value(), "first 1000");
  end(pid);
  const int again = start(pid, "second");
  if (again < 0) GTEST_SKIP() << "only root may start a process with a certain pid";
  ASSERT_EQ(again, pid);
  EXPECT_EQ(command_of(pid, "second 1000"), "second 1000");
  clock.sleep_s(11);
  EXPECT_EQ(known.describe(pid).command.value(), "second 1000");
  end(pid);
  clock.sleep_s(11);
  EXPECT_EQ(known.describe(pid).command.missing().reason, MissingReason::lost);
}

}  // namespace
}  // namespace remuda::probe
