#include "process/tree.h"

#include <algorithm>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/env.h"
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
  for (int i = 0; i < 1000 && processes_with(daemon).size() < 3; ++i)
    ::usleep(1000);  // while it begins a program, a process has no environment
  EXPECT_THAT(processes_with(daemon), SizeIs(3));
  EXPECT_THAT(processes_with({std::string(env::daemon.name) + "=/a/dae"}), IsEmpty());
  EXPECT_THAT(descendants(shell.pid()), IsEmpty());
  const ChildProcess job = family();
  EXPECT_THAT(descendants(::getpid()), SizeIs(3)) << "a daemon hides no job's process";
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

}  // namespace
}  // namespace remuda::process
