#include "launch/orphans.h"

#include <algorithm>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "launch/child_output.h"

namespace remuda {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr double kCarrierPatience_s = 10;

/// A shell with a child and a grandchild that all wait for ever; it has written "ready" when they are there.
ChildProcess family(const Environment& environment = {}) {
  auto process = ChildProcess::spawn(
      {.argv = {"/bin/sh", "-c", "(sleep 1000 & echo ready; wait) & wait"}, .environment = environment});
  EXPECT_TRUE(process) << process.error().message;
  await(process->output());
  return std::move(*process);
}

TEST(Orphans, FindsChildrenAndTheirs) {
  const ChildProcess shell = family();
  EXPECT_THAT(descendants(shell.pid()), SizeIs(2));
  const auto all = descendants(::getpid());
  EXPECT_NE(std::ranges::find(all, shell.pid(), &ProcessId::pid), all.end());
  EXPECT_THAT(descendants(::getpid(), {shell.pid()}), IsEmpty()) << "nor what descends from them";
}

TEST(Orphans, TellsTheProcessesOfAJobByPoolAndNumber) {
  const ChildProcess shell = family({{kJobVariable, "12"}, {kPoolVariable, "/a/pool"}});
  EXPECT_THAT(carriers("/a/pool", 12), SizeIs(3));
  EXPECT_THAT(carriers("/a/pool", 1), IsEmpty());
  EXPECT_THAT(carriers("/another/pool", 12), IsEmpty());
}

TEST(Orphans, KnowsWhetherAJobHasSome) {
  Job job;
  job.id = 12;
  job.uid = static_cast<int>(::getuid());
  EXPECT_FALSE(has_orphans("/a/pool/of/one", job));
  const ChildProcess shell = family({{kJobVariable, "12"}, {kPoolVariable, "/a/pool/of/one"}});
  EXPECT_TRUE(has_orphans("/a/pool/of/one", job));
}

TEST(Orphans, DaemonsAreNobodysButTheirOwn) {
  const ChildProcess shell = family({{kDaemonVariable, "/a/daemon"}});
  EXPECT_THAT(daemon_processes("/a/daemon"), SizeIs(3));
  EXPECT_THAT(daemon_processes("/a/dae"), IsEmpty());
  EXPECT_THAT(descendants(shell.pid()), IsEmpty());
  const ChildProcess job = family();
  EXPECT_THAT(descendants(::getpid()), SizeIs(3)) << "a daemon hides no job's process";
}

TEST(Orphans, KillsUntilNoneIsLeft) {
  ChildProcess shell = family({{kJobVariable, "13"}, {kPoolVariable, "/a/pool"}});
  const auto left = kill_all([] { return carriers("/a/pool", 13); }, kCarrierPatience_s, [&] { shell.exit_state(); });
  EXPECT_THAT(left, IsEmpty());
  EXPECT_EQ(await_exit(shell).signal, SIGKILL);
}

TEST(Orphans, GivesUpOnWhatCannotBeKilled) {
  const ProcessId self = own_process_id();
  ProcessId other = self;
  other.start_ticks -= 1;  // as after a pid was used again
  EXPECT_THAT(kill_all([&] { return std::vector{other}; }, 0), SizeIs(1));
}

TEST(Orphans, NeverSignalsAnotherProcessUnderTheSameNumber) {
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
}  // namespace remuda
