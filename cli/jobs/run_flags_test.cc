#include "cli/jobs/run_flags.h"

#include <algorithm>
#include <csignal>
#include <gmock/gmock.h>

namespace remuda::cli {
namespace {

/// What an option of `remuda run` makes of it.
Result<run::RunSpec> spec_of(std::vector<std::string> line) {
  CLI::App app("A sample");
  RunFlags flags;
  flags.app = &app;
  add_request_options(app, flags.request);
  add_job_options(app, flags);
  std::ranges::reverse(line);
  app.parse(line);
  return make_job_spec(flags);
}

TEST(RunFlags, ACheckpointSignalIsOneThatAProgramCanHandle) {
  EXPECT_EQ(spec_of({}).value().checkpoint_signal, 0) << "the policy's";
  EXPECT_EQ(spec_of({"--checkpoint-signal", "sigusr2"}).value().checkpoint_signal, SIGUSR2);
  const auto refused = spec_of({"--checkpoint-signal", "KILL"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "--checkpoint-signal: no program can handle KILL; write USR1 or another that yours handles");
  EXPECT_FALSE(spec_of({"--checkpoint-signal", "HARD"}));
  EXPECT_EQ(spec_of({"--signal", "KILL"}).value().stop_signal, SIGKILL);
}

TEST(RunFlags, BeginsAtNoTimeThatHasPassed) {
  EXPECT_GT(spec_of({"--begin", "2h"}).value().job.begin_s, 0);
  const auto refused = spec_of({"--begin", "2020-01-01 00:00"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "--begin: '2020-01-01 00:00' has passed; without it the job starts at once");
}

}  // namespace
}  // namespace remuda::cli
