#include "run/orphans.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/env.h"
#include "process/testing/child_output.h"

namespace remuda::run {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr double kCarrierPatience_s = 10;

TEST(Orphans, TellsTheProcessesOfAJobByPoolAndNumber) {
  const process::ChildProcess shell = process::family({{env::job.name, "12"}, {env::job_pool.name, "/a/pool"}});
  EXPECT_THAT(carriers("/a/pool", 12), SizeIs(3));
  EXPECT_THAT(carriers("/a/pool", 1), IsEmpty());
  EXPECT_THAT(carriers("/another/pool", 12), IsEmpty());
}

TEST(Orphans, KnowsWhetherAJobHasSome) {
  pool::Job job;
  job.id = 12;
  job.uid = static_cast<int>(::getuid());
  EXPECT_FALSE(has_orphans("/a/pool/of/one", job));
  const process::ChildProcess shell = process::family({{env::job.name, "12"}, {env::job_pool.name, "/a/pool/of/one"}});
  EXPECT_TRUE(has_orphans("/a/pool/of/one", job));
}

TEST(Orphans, KillsUntilNoneIsLeft) {
  process::ChildProcess shell = process::family({{env::job.name, "13"}, {env::job_pool.name, "/a/pool"}});
  const auto left =
      process::kill_all([] { return carriers("/a/pool", 13); }, kCarrierPatience_s, [&] { shell.exit_state(); });
  EXPECT_THAT(left, IsEmpty());
  EXPECT_EQ(await_exit(shell).signal, SIGKILL);
}

}  // namespace
}  // namespace remuda::run
