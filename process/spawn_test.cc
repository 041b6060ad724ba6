#include "process/spawn.h"

#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/testing/child_output.h"

namespace remuda::process {
namespace {

struct Ended {
  std::string out;
  int status;
};

Ended run(ProcessSpec process) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  process.out = write_end.get();
  const auto pid = spawn(process);
  EXPECT_TRUE(pid) << pid.error().sentence;
  if (!pid) return {"", -1};
  write_end.reset();
  std::string out = read_to_end(read_end.get());
  int status = 0;
  EXPECT_EQ(::waitpid(*pid, &status, 0), *pid);
  return {std::move(out), status};
}

ProcessSpec shell(const std::string& script) { return {.argv = {"sh", "-c", script}}; }

TEST(Spawn, IsSearchedInThePathAndEndsAsItLikes) {
  EXPECT_EQ(WEXITSTATUS(run(shell("exit 7")).status), 7);
  EXPECT_EQ(WTERMSIG(run(shell("kill -9 $$")).status), SIGKILL);
}

TEST(Spawn, HasTheEnvironmentAsked) {
  ::setenv("REMUDA_TEST_GONE", "here", 1);
  ProcessSpec process = shell("echo $FOO,$REMUDA_TEST_GONE,$HOME");
  process.environment = {{"FOO", "bar"}, {"HOME", "/nowhere"}};
  process.unset = {"REMUDA_TEST_GONE"};
  EXPECT_EQ(run(process).out, "bar,,/nowhere\n");
  ::unsetenv("REMUDA_TEST_GONE");
}

TEST(Spawn, StartsInItsFolderAndInAGroupOfItsOwn) {
  ProcessSpec process = shell("pwd; ps -o pgid= -p $$ | tr -d ' '; echo $$");
  process.folder = "/";
  process.group = 999999999;
  const auto lines = run(process).out;
  EXPECT_EQ(lines.substr(0, 2), "/\n");
  const size_t middle = lines.find('\n', 2);
  EXPECT_EQ(lines.substr(2, middle - 2) + "\n", lines.substr(middle + 1));
}

TEST(Spawn, JoinsAGroup) {
  ProcessSpec process = shell("ps -o pgid= -p $$ | tr -d ' '");
  process.group = ::getpgrp();
  EXPECT_EQ(run(process).out, std::to_string(::getpgrp()) + "\n");
}

TEST(Spawn, SaysWhyItCannotStart) {
  const auto missing = spawn({.argv = {"no-such-program-anywhere"}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().status, kNotFound);
  EXPECT_EQ(missing.error().sentence, "there is no program no-such-program-anywhere");
  const auto data = spawn({.argv = {"/etc/passwd"}});
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().status, kCannotExecute);
  const auto nowhere = spawn({.argv = {"true"}, .folder = "/no/such/folder"});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().status, kOwnFailure);
  EXPECT_EQ(nowhere.error().sentence, "cannot work in /no/such/folder: No such file or directory");
}

TEST(Spawn, ExitCodesAreThoseOfAShell) {
  EXPECT_EQ(exit_code({3, 0}), 3);
  EXPECT_EQ(exit_code({0, SIGTERM}), 143);
}

}  // namespace
}  // namespace remuda::process
