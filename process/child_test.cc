#include "process/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "process/testing/child_output.h"

namespace remuda::process {
namespace {

using testing::HasSubstr;
using testing::Not;

ProcessSpec worker(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), FAKE_WORKER);
  return {.argv = std::move(arguments)};
}

/// Runs it to its end; returns its output.
std::string output_of(const ProcessSpec& spec, const std::string& input = "") {
  auto process = ChildProcess::spawn(spec, input);
  if (!process) return "cannot start: " + process.error().message;
  const std::string text = read_to_end(process->output());
  EXPECT_TRUE(await_exit(*process).ok());
  return text;
}

int one_core() {
  cpu_set_t set;
  ::sched_getaffinity(0, sizeof set, &set);
  for (int core = CPU_SETSIZE - 1; core >= 0; --core)
    if (CPU_ISSET(core, &set)) return core;
  return 0;
}

TEST(Process, RunsOnTheCoresItIsGiven) {
  ProcessSpec spec = worker({"cores"});
  spec.affinity.cores = {one_core()};
  EXPECT_EQ(output_of(spec), fmt::format("{}\n", one_core()));
}

TEST(Process, CoresThatAreNotThereAreAnError) {
  ProcessSpec spec = worker({"cores"});
  spec.affinity.cores = {60'000};
  spec.must_bind = true;
  const auto process = ChildProcess::spawn(spec);
  ASSERT_FALSE(process);
  EXPECT_THAT(process.error().message, HasSubstr("on cores 60000: Invalid argument"));
}

TEST(Process, ReadsItsInput) {
  const std::string input = std::string(300'000, 'x') + "end";  // more than a pipe holds
  EXPECT_EQ(output_of(worker({"stdin"}), input), input + "\n");
}

TEST(Process, AddsToAndReplacesTheEnvironment) {
  ::setenv("REMUDA_TEST_KEPT", "kept", 1);
  ::setenv("REMUDA_TEST_REPLACED", "old", 1);
  ProcessSpec spec = worker({"env", "REMUDA_TEST_KEPT", "env", "REMUDA_TEST_REPLACED", "env", "REMUDA_TEST_ADDED"});
  spec.environment = {{"REMUDA_TEST_REPLACED", "new=er"}, {"REMUDA_TEST_ADDED", "added"}};
  EXPECT_EQ(output_of(spec), "REMUDA_TEST_KEPT=kept\nREMUDA_TEST_REPLACED=new=er\nREMUDA_TEST_ADDED=added\n");
}

/// A descriptor with a number that no program opens by default.
Fd numbered(int least) { return Fd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, least)); }

TEST(Process, KeepsOnlyTheDescriptorsItIsGiven) {
  const Fd kept = numbered(500), other = numbered(600);
  const ProcessSpec spec{.argv = {"/bin/ls", "/proc/self/fd"}, .inherited = {kept.get()}};
  const std::string listing = output_of(spec);
  EXPECT_THAT(listing, HasSubstr(fmt::format("\n{}\n", kept.get())));
  EXPECT_THAT(listing, Not(HasSubstr(fmt::format("\n{}\n", other.get()))));
}

TEST(Process, AMissingProgramIsNamed) {
  const auto process = ChildProcess::spawn({.argv = {"/nowhere/program"}});
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().message, "there is no program /nowhere/program");
}

TEST(Process, TellsHowItEnded) {
  auto exited = ChildProcess::spawn(worker({"exit", "3"}));
  auto killed = ChildProcess::spawn(worker({"raise", "9"}));
  ASSERT_TRUE(exited && killed);
  EXPECT_EQ(to_string(await_exit(*exited)), "exited with status 3");
  EXPECT_EQ(to_string(await_exit(*killed)), "killed by signal 9 (Killed)");
}

TEST(Process, IgnoresTheOwnersBlockedSignals) {
  sigset_t set, before;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, &before);
  auto process = ChildProcess::spawn(worker({"raise", "15"}));
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(process);
  EXPECT_EQ(await_exit(*process).signal, SIGTERM);
}

TEST(Process, IsGoneWithItsOwner) {
  Fd watch;
  {
    auto process = ChildProcess::spawn(worker({"deaf", "wait"}));
    ASSERT_TRUE(process);
    watch = watch_process(process->pid());
    ASSERT_FALSE(process->exit_state());
  }
  pollfd polled{watch.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 1);
}

/// A process that owns a child, writes its id to `told`, and waits.
[[noreturn]] void own_a_child(int told) {
  auto child = ChildProcess::spawn(worker({"deaf", "wait"}));
  const pid_t pid = child ? child->pid() : -1;
  [[maybe_unused]] const ssize_t written = ::write(told, &pid, sizeof pid);
  for (;;) ::pause();
}

TEST(Process, IsGoneWhenItsOwnerIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t owner = ::fork();
  if (owner == 0) own_a_child(ends[1]);
  pid_t child = -1;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), ssize_t(sizeof child));
  const Fd watch = watch_process(child);
  ASSERT_TRUE(watch);
  ::kill(owner, SIGKILL);
  await(watch.get());
  ::waitpid(owner, nullptr, 0);
  ::close(ends[0]), ::close(ends[1]);
}

}  // namespace
}  // namespace remuda::process
