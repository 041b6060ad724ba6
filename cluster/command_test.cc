#include "cluster/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cluster {
namespace {

constexpr double kEnough_s = 20;

Result<std::string> shell(const std::string& script, double limit_s = kEnough_s) {
  return run_command({"/bin/sh", "-c", script}, limit_s);
}

TEST(Command, GivesAllThatItPrints) {
  EXPECT_EQ(shell("echo out; echo err >&2").value_or(""), "out\nerr\n");
  EXPECT_EQ(shell("head -c 300000 /dev/zero").value_or("").size(), 300'000U);
}

TEST(Command, SaysWhyThereIsNothing) {
  EXPECT_EQ(shell("exit 3").error().message, "/bin/sh exited with status 3");
  EXPECT_EQ(shell("sleep 1000", 0.1).error().message, "/bin/sh did not end within 0.1 s");
  EXPECT_EQ(shell("cat /dev/zero").error().message, "/bin/sh prints too much");
  EXPECT_FALSE(run_command({"/no/such/program"}, kEnough_s));
}

}  // namespace
}  // namespace remuda::cluster
