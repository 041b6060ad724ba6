#include "run/orphans.h"

#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/env.h"
#include "base/testing/scratch_folder.h"
#include "confine/cgroup.h"
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

TEST(Orphans, AreNotThoseOfAnotherPoolUnderTheSamePath) {
  const ScratchFolder folder;
  const std::string pool = folder.path("pool");
  std::filesystem::create_directory(pool);
  const auto environment = [&] {
    return process::Environment{
        {env::job.name, "12"}, {env::job_pool.name, pool}, {env::job_pool_id.name, confine::pool_identity(pool)}};
  };
  const process::ChildProcess earlier = process::family(environment());
  EXPECT_THAT(carriers(pool, 12), SizeIs(3));
  std::filesystem::rename(pool, folder.path("removed"));  // in a new pool, the numbers of jobs start at 1 again
  std::filesystem::create_directory(pool);
  EXPECT_THAT(carriers(pool, 12), IsEmpty());
  pool::Job job;
  job.id = 12;
  job.uid = static_cast<int>(::getuid());
  EXPECT_FALSE(has_orphans(pool, job));
  const process::ChildProcess own = process::family(environment());
  EXPECT_THAT(carriers(pool, 12), SizeIs(3));
  EXPECT_TRUE(kill_orphans(pool, 12, kCarrierPatience_s).size() <= 1) << "a zombie, which this test reaps, may be left";
  EXPECT_TRUE(process::process_id(earlier.pid())) << "it belongs to a job of the earlier pool";
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
