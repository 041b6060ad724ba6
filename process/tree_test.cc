#include "process/tree.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/env.h"
#include "base/testing/scratch_folder.h"
#include "process/stat.h"
#include "process/testing/child_output.h"

namespace remuda::process {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(ProcessTree, FindsChildrenAndTheirs) {
  const ChildProcess shell = family();
  EXPECT_THAT(descendants(shell.pid()), SizeIs(2));
  const auto all = descendants(::getpid());
  EXPECT_NE(std::ranges::find(all, shell.pid(), &ProcessId::pid), all.end());
  EXPECT_THAT(descendants(::getpid(), {shell.pid()}), IsEmpty()) << "nor what descends from them";
}

TEST(ProcessTree, DaemonsAreNobodysButTheirOwn) {
  const ChildProcess shell = family({{env::daemon.name, "/a/daemon"}});
  const std::vector<std::string> daemon{std::string(env::daemon.name) + "=/a/daemon"};
  EXPECT_THAT(processes_with(daemon), SizeIs(3));
  EXPECT_THAT(processes_with({std::string(env::daemon.name) + "=/a/dae"}), IsEmpty());
  EXPECT_THAT(descendants(shell.pid()), IsEmpty());
  const ChildProcess job = family();
  EXPECT_THAT(descendants(::getpid()), SizeIs(3)) << "a daemon hides no job's process";
}

TEST(ProcessTree, FindsAProcessWhileItBeginsAProgram) {
  // While execve loads a program, the kernel shows an empty environment: 1 look in 70 at this shell, which does
  // nothing else.
  const ScratchFolder folder;
  const std::string script = folder.path("again");
  std::ofstream(script) << "#!/bin/sh\nexec \"$0\"\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto shell = ChildProcess::spawn({.argv = {script}, .environment = {{"A_MARK", "here"}}});
  ASSERT_TRUE(shell) << shell.error().message;
  constexpr int kLooks = 5000;
  int missed = 0;
  for (int i = 0; i < kLooks; ++i) {
    const auto entries = environ_of(shell->pid());
    missed += !entries || std::ranges::find(*entries, "A_MARK=here") == entries->end();
  }
  EXPECT_LE(missed, 5) << "of " << kLooks;  // this process may have to wait for a second between two looks
}

TEST(ProcessTree, FindsAProcessWhoseFirstThreadHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] { ::pause(); }).detach();
    ::syscall(SYS_exit, 0);  // only this thread
  }
  const auto looks_like_a_zombie = [&] {
    const auto stat = process_stat(child);
    return stat && stat->state == 'Z';
  };
  while (!looks_like_a_zombie()) ::usleep(100);
  EXPECT_EQ(environ_of(child), environ_of(::getpid()));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(ProcessTree, AnEmptyEnvironmentIsNotWaitedFor) {
  auto bare = ChildProcess::spawn({.argv = {"/usr/bin/env", "-i", "/bin/sh", "-c", "echo ready; sleep 1000"}});
  ASSERT_TRUE(bare) << bare.error().message;
  await(bare->output());
  EXPECT_EQ(environ_of(bare->pid()), std::vector<std::string>{}) << "nothing where it was waited for in vain";
}

TEST(ProcessTree, GivesUpOnWhatCannotBeKilled) {
  const ProcessId self = own_process_id();
  ProcessId other = self;
  other.start_ticks -= 1;  // as after a pid was used again
  EXPECT_THAT(kill_all([&] { return std::vector{other}; }, 0), SizeIs(1));
}

TEST(ProcessTree, NeverSignalsAnotherProcessUnderTheSameNumber) {
  ChildProcess shell = family();
  ProcessId process = process_id(shell.pid()).value();
  --process.start_ticks;
  EXPECT_FALSE(send_signal(process, SIGKILL));
  EXPECT_FALSE(shell.exit_state());
  ++process.start_ticks;
  EXPECT_TRUE(send_signal(process, SIGKILL));
  EXPECT_EQ(await_exit(shell).signal, SIGKILL);
}

TEST(ProcessTree, AFamilyIsOfOneUser) {
  ChildProcess shell = family();
  const ProcessId parent = process_id(shell.pid()).value();
  const auto children = all_descendants(shell.pid());
  const int own = static_cast<int>(::getuid());
  EXPECT_THAT(family_of(parent, own), SizeIs(children.size() + 1));
  EXPECT_EQ(family_of(parent, own).front(), parent);
  EXPECT_THAT(family_of(parent, own + 1), SizeIs(1)) << "its children are another user's";
}

}  // namespace
}  // namespace remuda::process
