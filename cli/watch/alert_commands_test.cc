#include "cli/watch/alert_commands.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "base/testing/scratch_folder.h"

namespace remuda::cli {
namespace {

/// Calls tend() until nothing runs, at that time.
void finish(AlertCommands& commands, double now_s) {
  for (int i = 0; i < 2000 && !commands.is_idle(); ++i) {
    commands.tend(now_s);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(commands.is_idle());
}

TEST(AlertCommands, RunOneAfterAnotherWithTheirVariables) {
  const ScratchFolder folder;
  AlertCommands commands("remuda web");
  for (const char* text : {"one", "two", "three"}) commands.run("echo $TEXT >>" + folder.path("out"), {{"TEXT", text}});
  finish(commands, 0);
  EXPECT_EQ(folder.read("out"), "one\ntwo\nthree\n");
}

TEST(AlertCommands, KillOneThatHangsWithItsChildren) {
  const ScratchFolder folder;
  AlertCommands commands("remuda web");
  commands.run("sleep 600 & sleep 600", {});
  commands.run("echo next >" + folder.path("out"), {});
  commands.tend(0);
  commands.tend(AlertCommands::kLongest_s);
  EXPECT_FALSE(folder.has("out"));
  testing::internal::CaptureStderr();
  finish(commands, AlertCommands::kLongest_s + 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "remuda web: the command of --on-alert took more than 30 s and was killed\n");
  EXPECT_EQ(folder.read("out"), "next\n");
}

TEST(AlertCommands, LeaveOutTheOldestWhereTooManyWait) {
  const ScratchFolder folder;
  AlertCommands commands("remuda web");
  for (size_t i = 0; i < AlertCommands::kMostWaiting + 1; ++i)
    commands.run("echo " + std::to_string(i) + " >>" + folder.path("out"), {});
  finish(commands, 0);
  EXPECT_EQ(folder.read("out").substr(0, 4), "1\n2\n");
}

}  // namespace
}  // namespace remuda::cli
