#include "probe/process.h"

#include <ctime>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"

namespace remuda::probe {
namespace {

using ::testing::HasSubstr;

/// stat of a process that started `ticks` after boot; its name contains what could confuse a parser.
std::string stat_of(int pid, const std::string& ticks) {
  return fmt::format("{} (a) b (c) R 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 {} 1 2 3", pid, ticks);
}

TEST(DescribeProcess, TellsOfThisOne) {
  const Process process = describe_process(::getpid());
  EXPECT_EQ(process.pid, ::getpid());
  ASSERT_TRUE(process.user.has_value()) << process.user.missing().detail;
  EXPECT_THAT(process.command.value_or(""), HasSubstr("test"));
  ASSERT_TRUE(process.start_time_s.has_value()) << process.start_time_s.missing().detail;
  constexpr double k2020 = 1.58e9, kClockError = 5;
  EXPECT_GT(process.start_time_s.value(), k2020);
  EXPECT_LT(process.start_time_s.value(), static_cast<double>(std::time(nullptr)) + kClockError);
}

TEST(DescribeProcess, ReadsWhatProcHolds) {
  const ScratchFolder proc;
  proc.write("7/status", "Name:\tx\nUid:\t4294900000\t0\t0\t0\n");
  proc.write("7/cmdline", std::string("python3\0train.py\0", 17));
  proc.write("7/stat", stat_of(7, "100"));
  proc.write("8/stat", stat_of(8, "300"));
  const Process first = describe_process(7, proc.path()), second = describe_process(8, proc.path());
  EXPECT_EQ(first.user.value(), "4294900000");
  EXPECT_EQ(first.command.value(), "python3 train.py");
  const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  EXPECT_NEAR(second.start_time_s.value() - first.start_time_s.value(), 200 / ticks_per_second, 1.5);
}

TEST(DescribeProcess, CallsAKernelThreadByItsName) {
  const ScratchFolder proc;
  proc.write("7/cmdline", "");
  proc.write("7/comm", "kworker/0:1\n");
  EXPECT_EQ(describe_process(7, proc.path()).command.value(), "kworker/0:1");
}

TEST(DescribeProcess, SaysWhyItKnowsNothing) {
  const ScratchFolder proc;
  const Process gone = describe_process(7, proc.path());
  for (const auto& missing : {gone.user.missing(), gone.command.missing(), gone.start_time_s.missing()}) {
    EXPECT_EQ(missing.reason, MissingReason::lost);
    EXPECT_THAT(missing.detail, HasSubstr("/7: the process has ended or is outside this pid namespace"));
  }
}

TEST(DescribeProcess, SurvivesGarbage) {
  const ScratchFolder proc;
  for (const std::string garbage : {"", "Uid:\n", ")", "7 (x) R 1 2 3", "\xff\xfe\x00", "Uid:\tme"}) {
    proc.write("7/status", garbage);
    proc.write("7/stat", garbage);
    const Process process = describe_process(7, proc.path());
    EXPECT_THAT(process.user.missing().detail, HasSubstr("status reports no user")) << garbage;
    EXPECT_THAT(process.start_time_s.missing().detail, HasSubstr("stat reports no start time")) << garbage;
    EXPECT_THAT(process.command.missing().detail, HasSubstr("there is no ")) << garbage;
  }
  proc.write("7/stat", stat_of(7, "-5"));
  EXPECT_FALSE(describe_process(7, proc.path()).start_time_s.has_value());
}

TEST(CleanCommand, CannotDriveATerminal) {
  EXPECT_EQ(clean_command("a\x1b[31m\n\n b\x7f"), "a [31m b");
  EXPECT_EQ(clean_command(""), "");
  EXPECT_EQ(clean_command("\xff"), "?");
}

TEST(CleanCommand, IsCutBetweenCharacters) {
  EXPECT_EQ(clean_command(std::string(300, 'x')), std::string(200, 'x'));
  EXPECT_EQ(clean_command(std::string(199, 'x') + "\xc3\xa4\xc3\xa4"), std::string(199, 'x'));
  EXPECT_EQ(clean_command(std::string(198, 'x') + "\xc3\xa4\xc3\xa4"), std::string(198, 'x') + "\xc3\xa4");
}

}  // namespace
}  // namespace remuda::probe
